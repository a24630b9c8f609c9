"""An engine without processes, TFX or ML Metadata: its nodes only pass."""

from __future__ import annotations

from pathlib import Path

from runners.engine import Capabilities, Observer, Plan
from sluice.record.events import (
    Event,
    Finished,
    GraphDrawn,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeStarted,
)
from sluice.record.recorder import Recorder
from sluice.record.run_record import NodeState, RunRecord

NODES = ("Read", "Train", "Push")


class MemoryEngine:
    """Runs ``NODES`` one after another.

    Attributes:
      plans: what it was asked to run.
    """

    capabilities = Capabilities(progress=True)

    def __init__(self, fails: str | None = None) -> None:
        self.plans: list[Plan] = []
        self._fails = fails

    def prewarm(self, root: Path) -> None:
        pass

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        self.plans.append(plan)
        recorder = Recorder(plan.run_dir)

        def tell(event: Event) -> None:
            recorder.apply(event)
            observer.on_event(event, recorder.record)

        upstream = zip(NODES, ((), *((name,) for name in NODES)), strict=False)
        tell(GraphDrawn(nodes=tuple(GraphNode(n, n, before) for n, before in upstream)))
        failed = False
        for name in NODES:
            if failed:
                reason = f"stopped by {self._fails}"
                tell(NodeFinished(node=name, state="not_reached", reason=reason))
                continue
            tell(NodeStarted(node=name, attempt=1))
            observer.on_progress(name, {"event": "line", "line": f"{name} works"})
            failed = name == self._fails
            error = NodeFailure(f"{name} is broken", 7) if failed else None
            state: NodeState = "failed" if failed else "ran"
            tell(NodeFinished(node=name, state=state, duration_s=0.1, error=error))
        tell(Finished())
        recorder.end()
        return recorder.record
