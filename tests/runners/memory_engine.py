"""An engine without processes, TFX or ML Metadata: its nodes only pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runners.engine import Capabilities, Observer, Plan
from sluice.record.events import (
    Finished,
    GraphDrawn,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeStarted,
    Push,
)
from sluice.record.recorder import Recorder
from sluice.record.run_record import NodeState, RunRecord

NODES = ("Read", "Train", "Push")


class MemoryEngine:
    """Runs ``NODES`` one after another.

    Attributes:
      capabilities: what it says that it can do.
      plans: what it was asked to run.
    """

    def __init__(
        self,
        capabilities: Capabilities | None = None,
        *,
        fails: str | None = None,
        act: Callable[[str], object] = lambda name: None,
        pushes: str | None = None,
        ends: bool = True,
    ) -> None:
        """Sets what happens.

        Args:
          capabilities: what it says that it can do; None for ``progress`` alone.
          fails: the node that does.
          act: what each node does, called with its id.
          pushes: where the last node says that it has pushed to.
          ends: whether the record is closed at the end.
        """
        self.capabilities = capabilities or Capabilities(progress=True)
        self.plans: list[Plan] = []
        self._fails, self._act, self._pushes, self._ends = fails, act, pushes, ends

    def prewarm(self, root: Path) -> None:
        pass

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        self.plans.append(plan)
        recorder = Recorder(plan.run_dir, observer.on_event)
        tell = recorder.apply
        upstream = zip(NODES, ((), *((name,) for name in NODES)), strict=False)
        tell(GraphDrawn(nodes=tuple(GraphNode(n, n, before) for n, before in upstream)))
        failed = False
        for name in NODES:
            if failed:
                reason = f"stopped by {self._fails}"
                tell(NodeFinished(node=name, state="not_reached", reason=reason))
                continue
            tell(NodeStarted(node=name, attempt=1))
            if self.capabilities.progress:
                observer.on_progress(name, {"event": "line", "line": f"{name} works"})
            self._act(name)
            failed = name == self._fails
            tell(self._end_of(name))
        if self._ends:
            tell(Finished())
            recorder.end()
        return recorder.record

    def _end_of(self, name: str) -> NodeFinished:
        failed = name == self._fails
        error = NodeFailure(f"{name} is broken", 7) if failed else None
        state: NodeState = "failed" if failed else "ran"
        push = Push("pushed", 1, self._pushes) if self._pushes else None
        return NodeFinished(
            node=name,
            state=state,
            duration_s=0.1,
            error=error,
            push=push if name == NODES[-1] else None,
        )
