"""In-memory engine: runs stub nodes without processes, TFX or ML Metadata."""

from runners.engine import Observer, Plan
from sluice.record.parts import ErrorRecord, NodeEnd, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord

NODES = ("Read", "Train", "Push")


class MemoryEngine:
    """Runs ``NODES`` one after another.

    Attributes:
      plans: that it was called with.
    """

    def __init__(self, *, fails=None, act=lambda name: None, pushes=None):
        """Makes an engine.

        Args:
          fails: the node that fails.
          act: called with the id of each node while it runs.
          pushes: the URI that the last node pushes to.
        """
        self.plans: list[Plan] = []
        self._fails, self._act, self._pushes = fails, act, pushes

    def run(self, plan: Plan, record: RunRecord, observer: Observer) -> None:
        self.plans.append(plan)
        before = ([], *([name] for name in NODES))
        nodes = zip(NODES, before, strict=False)
        record.set_graph(NodeRecord(name, name, upstream=up) for name, up in nodes)
        observer.on_begin(record)
        for node in record.nodes:
            if end := record.stopped_by_upstream(node):
                record.end_node(end)
            elif node.state == "not_reached":
                self._run_node(node, record, observer)
            record.save(plan.run_dir)
            observer.on_node(record, node)
        record.end()

    def _run_node(
        self, node: NodeRecord, record: RunRecord, observer: Observer
    ) -> None:
        record.start_node(node.id)
        observer.on_progress(node.id, {"event": "line", "line": f"{node.id} works"})
        self._act(node.id)
        end = NodeEnd(node.id, "ran", 0.1)
        if node.id == self._fails:
            said = f"{node.id} is broken"
            end = NodeEnd(node.id, "failed", 0.1, said, ErrorRecord(node.id, said))
        elif node.id == NODES[-1] and self._pushes:
            end.push = PushRecord("", "pushed", 1, self._pushes)
        record.end_node(end)
