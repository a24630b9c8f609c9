"""Node registry: one entry per node kind holds everything known about it.

``NODES`` is in topological order. ``create_pipeline`` walks it; ``validate_graph``, the
cache and the process pool read it, so nothing of TFX is imported here. What a run must
know of a node's kind, such as that it is a gate, is looked up in ``sluice.node_kinds``
by the component's class. Nodes that the config adds
(``pipeline.graph.custom_nodes``) are entries of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.config.config import Config
from pipeline.graph import arguments
from pipeline.graph.arguments import GraphContext

PREPROCESSING = "pipeline.training.preprocessing"

Names = tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """One node of the graph.

    Attributes:
      id: TFX's node id.
      component: the import path of its TFX component, ``package.module:Class``.
      inputs: by argument of the component, what it takes: ``<node id>.<output>``; left
        out where the pipeline of a config does not have that node.
      arguments: returns the component's other arguments.
      outputs: what the component calls its outputs; None where only it knows.
      after: the nodes that it waits for and takes nothing from.
      packages: distributions whose version its result depends on.
      more_packages: further ones, by the config.
      code: modules that it runs, beside TFX's own.
      more_code: further ones, by the config.
      is_in: whether the pipeline of a config has it.
    """

    id: str
    component: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    arguments: Callable[[GraphContext], Mapping[str, Any]] = lambda context: {}
    outputs: Names | None = ()
    after: Names = ()
    packages: Names = ("tfx",)
    more_packages: Callable[[Config], Names] = lambda config: ()
    code: Names = ()
    more_code: Callable[[Config], Names] = lambda config: ()
    is_in: Callable[[Config], bool] = lambda config: True

    @property
    def upstream(self) -> list[str]:
        """The ids of all nodes that it waits for."""
        makers = (source.partition(".")[0] for source in self.inputs.values())
        return list(dict.fromkeys((*makers, *self.after)))

    def all_packages(self, config: Config) -> Names:
        """The distributions that count for a config's pipeline."""
        return (*self.packages, *self.more_packages(config))

    def all_code(self, config: Config) -> Names:
        """The modules that count for a config's pipeline."""
        return (*self.code, *self.more_code(config))


def _has_serving(config: Config) -> bool:
    return config.data.serving is not None


def _decoder(config: Config) -> Names:
    return ("tensorflow",) if arguments.image_checks_of(config) else ()


def _preprocessing_module(config: Config) -> Names:
    return ((config.preprocessing or PREPROCESSING).partition(":")[0],)


_VALIDATION = ("tfx", "tensorflow-data-validation")
_ANALYSIS = ("tfx", "tensorflow", "tensorflow-model-analysis")
_INGESTION = ("components.tfrecord_gen.executor", "components.tfrecord_gen.driver")

NODES = (
    Node(
        "TFRecordGen",
        "components.tfrecord_gen.component:TFRecordGen",
        arguments=arguments.of_tfrecord_gen,
        outputs=("examples", "quarantine"),
        more_packages=_decoder,
        code=_INGESTION,
    ),
    Node(
        "ImportSchemaGen",
        "tfx.components.schema_gen.import_schema_gen.component:ImportSchemaGen",
        arguments=arguments.of_import_schema_gen,
        outputs=("schema",),
    ),
    Node(
        "StatisticsGen",
        "tfx.components:StatisticsGen",
        {"examples": "TFRecordGen.examples"},
        outputs=("statistics",),
        packages=_VALIDATION,
    ),
    Node(
        "ServingTFRecordGen",
        "components.tfrecord_gen.component:TFRecordGen",
        arguments=arguments.of_serving_tfrecord_gen,
        outputs=("examples", "quarantine"),
        more_packages=_decoder,
        code=_INGESTION,
        is_in=_has_serving,
    ),
    Node(
        "ServingStatisticsGen",
        "tfx.components:StatisticsGen",
        {"examples": "ServingTFRecordGen.examples"},
        outputs=("statistics",),
        packages=_VALIDATION,
        is_in=_has_serving,
    ),
    Node(
        "ExampleValidator",
        "tfx.components:ExampleValidator",
        {"statistics": "StatisticsGen.statistics", "schema": "ImportSchemaGen.schema"},
        outputs=("anomalies",),
        packages=_VALIDATION,
    ),
    Node(
        "DataVerdict",
        "components.data_verdict.component:DataVerdict",
        {
            "statistics": "StatisticsGen.statistics",
            "anomalies": "ExampleValidator.anomalies",
            "schema": "ImportSchemaGen.schema",
            "quarantine": "TFRecordGen.quarantine",
            "serving_statistics": "ServingStatisticsGen.statistics",
            "serving_quarantine": "ServingTFRecordGen.quarantine",
        },
        arguments.of_data_verdict,
        outputs=("verdict",),
        packages=_VALIDATION,
        code=("components.data_verdict.executor", "components.data_verdict.driver"),
    ),
    Node(
        "DataGate",
        "components.data_gate.component:DataGate",
        {"verdict": "DataVerdict.verdict"},
        code=("components.data_gate.executor",),
    ),
    Node(
        "AcceptData",
        "components.accept_data.component:AcceptData",
        {
            "statistics": "StatisticsGen.statistics",
            "quarantine": "TFRecordGen.quarantine",
            "verdict": "DataVerdict.verdict",
        },
        arguments.of_accept_data,
        after=("DataGate",),
        code=("components.accept_data.executor",),
    ),
    Node(
        "Transform",
        "tfx.components:Transform",
        {"examples": "TFRecordGen.examples", "schema": "ImportSchemaGen.schema"},
        arguments.of_transform,
        outputs=("transform_graph", "transformed_examples", "updated_analyzer_cache"),
        after=("DataGate",),
        packages=("tfx", "tensorflow", "tensorflow-transform"),
        more_code=_preprocessing_module,
    ),
    Node(
        "Trainer",
        "tfx.components:Trainer",
        {
            "examples": "Transform.transformed_examples",
            "transform_graph": "Transform.transform_graph",
            "schema": "ImportSchemaGen.schema",
        },
        arguments.of_trainer,
        outputs=("model", "model_run"),
        after=("DataGate",),
        packages=("tfx", "tensorflow", "tf-keras"),
        code=("pipeline.training.run_fn",),
        more_code=lambda config: (config.model_module,),
    ),
    Node(
        "LatestBlessedModel",
        "tfx.dsl.components.common.resolver:Resolver",
        arguments=arguments.of_baseline_resolver,
        outputs=("model", "model_blessing"),
    ),
    Node(
        "Evaluator",
        "components.evaluator.component:Evaluator",
        {
            "examples": "TFRecordGen.examples",
            "model": "Trainer.model",
            "baseline_model": "LatestBlessedModel.model",
            "schema": "ImportSchemaGen.schema",
        },
        arguments.of_evaluator,
        outputs=("evaluation", "blessing"),
        packages=_ANALYSIS,
        code=("components.evaluator.executor", "components.model_verdict.class_counts"),
    ),
    Node(
        "ModelVerdict",
        "components.model_verdict.component:ModelVerdict",
        {
            "evaluation": "Evaluator.evaluation",
            "model": "Trainer.model",
            "baseline_model": "LatestBlessedModel.model",
        },
        arguments.of_model_verdict,
        outputs=("verdict", "blessing"),
        packages=_ANALYSIS,
        code=("components.model_verdict.executor", "components.model_verdict.driver"),
    ),
    Node(
        "Pusher",
        "components.pusher.component:Pusher",
        {"model": "Trainer.model", "model_blessing": "ModelVerdict.blessing"},
        arguments.of_pusher,
        outputs=("pushed_model",),
        code=("components.pusher.executor",),
    ),
)

# The nodes that more than the graph speaks of.
INGESTION, STATISTICS, PUSHER = "TFRecordGen", "StatisticsGen", "Pusher"
SERVING_INGESTION = "ServingTFRecordGen"


def modules_to_preload() -> list[str]:
    """Returns what a process that draws or runs the graph imports sooner or later."""
    found = ["pipeline.graph.create_pipeline", PREPROCESSING]
    for node in NODES:
        found += [node.component.partition(":")[0], *node.code]
    return list(dict.fromkeys(found))
