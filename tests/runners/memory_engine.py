"""In-memory engine: runs stub nodes without processes, TFX or ML Metadata."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runners.engine import Capabilities, Observer, Plan
from sluice.record.events import (
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeStarted,
    Push,
)
from sluice.record.recorder import Recorder
from sluice.record.run_record import NodeRecord, NodeState, RunRecord

NODES = ("Read", "Train", "Push")


class MemoryEngine:
    """Runs ``NODES`` one after another, at once or one by one.

    Attributes:
      capabilities: its optional features.
      plans: that it was called with.
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
        """Makes an engine.

        Args:
          capabilities: its optional features; None for none.
          fails: the node that fails.
          act: called with the id of each node while it runs.
          pushes: the URI that the last node pushes to.
          ends: whether ``run`` closes the record.
        """
        self.capabilities = capabilities or Capabilities()
        self.plans: list[Plan] = []
        self._fails, self._act, self._pushes, self._ends = fails, act, pushes, ends

    def prewarm(self, root: Path) -> None:
        pass

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        recorder = self._compile(plan, observer)
        for name in NODES:
            self._run_node(name, recorder, observer)
        if self._ends:
            recorder.apply(Finished())
            recorder.end()
        return recorder.record

    def prepare(self, plan: Plan, observer: Observer) -> RunRecord:
        self._act("prepare")
        return self._compile(plan, observer).record

    def run_node(self, plan: Plan, node: str, observer: Observer) -> NodeRecord | None:
        recorder = Recorder(plan.run_dir, observer.on_event)
        upstream = recorder.record.node(node).upstream
        if any(recorder.record.node(name).attempts == 0 for name in upstream):
            return None
        self._run_node(node, recorder, observer)
        return recorder.record.node(node)

    def end_run(self, plan: Plan, observer: Observer) -> RunRecord:
        recorder = Recorder(plan.run_dir, observer.on_event)
        recorder.apply(Finished())
        recorder.end()
        return recorder.record

    def _compile(self, plan: Plan, observer: Observer) -> Recorder:
        self.plans.append(plan)
        recorder = Recorder(plan.run_dir, observer.on_event)
        upstream = zip(NODES, ((), *((name,) for name in NODES)), strict=False)
        nodes = tuple(GraphNode(name, name, before) for name, before in upstream)
        recorder.apply(GraphCompiled(nodes=nodes))
        return recorder

    def _run_node(self, name: str, recorder: Recorder, observer: Observer) -> None:
        states = {node.state for node in recorder.record.nodes}
        if "failed" in states:
            reason = f"stopped by {self._fails}"
            recorder.apply(NodeFinished(node=name, state="not_reached", reason=reason))
            return
        recorder.apply(NodeStarted(node=name, attempt=1))
        observer.on_progress(name, {"event": "line", "line": f"{name} works"})
        self._act(name)
        recorder.apply(self._end_of(name))

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
