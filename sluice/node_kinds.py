"""Kinds of nodes and artifacts, by TFX's names: gates, verdicts, documents.

The compiled pipeline has only the class of each node and the type of each artifact.
Their traits are defined here alone: the prepare job writes them into ``graph.json``, so
that no later step compares names. Nothing is imported, so it also works for a pipeline
built elsewhere whose ``pipeline`` or ``components`` package hides ours. Components and
code of the nodes are in ``pipeline.graph.node_registry``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Input keys of the Evaluator and the model verdict for the two compared models.
CANDIDATE = "model"
BASELINE = "baseline_model"
# Input key of the Trainer for the model whose weights the training starts from.
FIRST_WEIGHTS = "base_model"
# The exec property in which ModelVerdict's driver describes the baseline.
ABOUT_BASELINE = "compared_with"
# Custom property of the examples of a scheduled run: whether its data is new, 1 or 0.
NEW_DATA = "new_data"
# Custom property of a decision: whether there is a reason to train, 1 or 0.
RETRAIN = "retrain"
# The id of the node that makes the decision.
RETRAIN_GATE = "RetrainGate"
# Ids of nodes that measure the served model on the newest span. Their outputs are not
# described: a page shows the run's own data and model.
NEWEST_INGESTION, SERVED_EVALUATOR = "NewestTFRecordGen", "ServedEvaluator"
NOT_DESCRIBED = frozenset({NEWEST_INGESTION, SERVED_EVALUATOR})
# The model's metrics over all examples: a custom property of its blessing, as JSON, and
# a fact of its version.
METRICS = "metrics"
# Statistics of what the model predicts for the judged split, in base64: a custom
# property of an infra blessing, and a fact of its version.
PREDICTIONS = "predictions"
# Custom property of an infra blessing: the node before whose refusal it hands on.
REFUSED_BY = "refused_by"


@dataclass(frozen=True)
class NodeKind:
    """A kind of node.

    Attributes:
      class_path: of the component, as the compiled pipeline names it.
      gate: whether it fails to block the nodes after it.
      decides: whether its decision changes with time, so that it is never cached.
      judges_data: whether its verdict is on the data, which a person may override.
      resolver: whether it looks up artifacts of earlier runs.
      system: whether TFX's launcher runs it without an executor.
      ingests: whether it reads the data's files and reports on them.
      accepts_data: whether it writes data that has passed into the baseline store.
      pushes: whether what it makes is served.
    """

    class_path: str
    gate: bool = False
    decides: bool = False
    judges_data: bool = False
    resolver: bool = False
    system: bool = False
    ingests: bool = False
    accepts_data: bool = False
    pushes: bool = False

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.class_path.rpartition(".")[2]

    @property
    def takes_module_path(self) -> bool:
        """Whether user code may be named by module instead of by file, as in TFX's."""
        return self.class_path.startswith("tfx.components.")


_COMMON = "tfx.dsl.components.common"
_KINDS = {
    kind.class_path: kind
    for kind in (
        NodeKind(f"{_COMMON}.resolver.Resolver", resolver=True, system=True),
        NodeKind(
            "components.baseline_model.component.LatestBlessedModel", resolver=True
        ),
        NodeKind(f"{_COMMON}.importer.Importer", system=True),
        NodeKind(f"{_COMMON}.manual_node.ManualNode", system=True),
        NodeKind("tfx.components.pusher.component.Pusher", pushes=True),
        NodeKind("components.pusher.component.Pusher", pushes=True),
        NodeKind("components.tfrecord_gen.component.TFRecordGen", ingests=True),
        NodeKind("components.data_verdict.component.DataVerdict", judges_data=True),
        NodeKind("components.data_gate.DataGate", gate=True),
        NodeKind("components.retrain_decision.component.RetrainGate", decides=True),
        NodeKind("components.accept_data.AcceptData", accepts_data=True),
    )
}


def kind_of(class_path: str) -> NodeKind:
    """Returns the kind of a node."""
    return _KINDS.get(class_path) or NodeKind(class_path)


def find_kind(module: str) -> NodeKind | None:
    """Returns the kind of the component in a module; None if it is not known."""
    of_module = (kind for path, kind in _KINDS.items() if path.startswith(f"{module}."))
    return next(of_module, None)


# The class names of gates and pushers, which is all that a record has of their kind.
GATES = frozenset(kind.name for kind in _KINDS.values() if kind.gate)
PUSHERS = frozenset(kind.name for kind in _KINDS.values() if kind.pushes)

# Artifact types that hold a verdict of ours, with its rows.
VERDICTS = frozenset(
    {
        "components.DataVerdict",
        "components.Exports",
        "components.ModelVerdict",
        "components.RetrainVerdict",
        "components.ServingCheck",
    }
)
# Which documents describe an artifact type.
DOCUMENTS = {
    "Examples": ("samples",),
    "ExampleAnomalies": ("anomalies",),
    "ExampleStatistics": ("statistics",),
    "Model": ("model", "lineage"),
    "ModelEvaluation": ("metrics", "mistakes", "residuals"),
    "ModelRun": ("epochs",),
    "PushedModel": ("lineage",),
    "Schema": ("schema",),
    "TunerResults": ("trials",),
    "components.DataVerdict": ("baseline_statistics", "distances"),
    "components.Quarantine": ("ingestion",),
}


def leading_to(
    wanted: Iterable[str], upstream: Mapping[str, Iterable[str]]
) -> set[str]:
    """Returns the wanted nodes and all upstream of them.

    Args:
      wanted: ids of nodes.
      upstream: the ids that each node waits for; those of no node are ignored.
    """
    reached: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in upstream and name not in reached:
            reached.add(name)
            waiting += upstream[name]
    return reached
