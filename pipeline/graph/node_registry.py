"""Node registry: component, inputs, arguments, code and packages of every node.

``NODES`` is in topological order. Nothing of TFX is imported here, since validation and
the cache read it too. ``custom_nodes`` adds the nodes of the config as entries of the
same form. Properties of a component's class, such as that it is a gate, are in
``sluice.node_kinds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.config.config import Config
from pipeline.config.train import TRAINED_BEFORE
from pipeline.graph import arguments
from pipeline.graph.arguments import GraphContext

PREPROCESSING = "pipeline.training.preprocessing"
TRAINING = "pipeline.training.run_fn"

Names = tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """One node of the graph.

    Attributes:
      id: TFX's node id.
      component: the import path of its TFX component, ``package.module:Class``.
      in_service: that of the component in its place in a cloud service; None for the
        same.
      inputs: ``<node id>.<output>`` by argument of the component; ignored where the
        pipeline does not have that node.
      arguments: returns the component's other arguments.
      outputs: names of the outputs; None if not known without importing it.
      after: nodes that it waits for without reading their outputs.
      packages: distributions whose version its result depends on.
      code: returns the modules that it runs with a config, without TFX's.
      is_in: whether a config's pipeline has the node.
    """

    id: str
    component: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    arguments: Callable[[GraphContext], Mapping[str, Any]] = lambda context: {}
    outputs: Names | None = ()
    after: Names = ()
    packages: Names = ("tfx",)
    code: Callable[[Config], Names] = lambda config: ()
    is_in: Callable[[Config], bool] = lambda config: True
    in_service: str | None = None

    @property
    def upstream(self) -> list[str]:
        """The ids of all nodes that it waits for."""
        producers = (source.partition(".")[0] for source in self.inputs.values())
        return list(dict.fromkeys((*producers, *self.after)))


def _has_serving(config: Config) -> bool:
    return config.data.serving is not None


def _preprocessing_module(config: Config) -> Names:
    return ((config.preprocessing or PREPROCESSING).partition(":")[0],)


def _training_modules(config: Config) -> Names:
    callbacks = (item.function.partition(":")[0] for item in config.train.callbacks)
    return (TRAINING, config.model_module, *callbacks)


def _modules(*names: str) -> Callable[[Config], Names]:
    """Returns the ``code`` of a node of ours, below ``components``."""
    return lambda config: tuple(f"components.{name}" for name in names)


_VALIDATION = ("tfx", "tensorflow-data-validation")
_ANALYSIS = ("tfx", "tensorflow", "tensorflow-model-analysis")

_TFRECORD_GEN = Node(
    "TFRecordGen",
    "components.tfrecord_gen.component:TFRecordGen",
    arguments=arguments.of_tfrecord_gen,
    outputs=("examples", "quarantine"),
    packages=("tfx", "tensorflow"),
    code=_modules("tfrecord_gen.executor", "tfrecord_gen.driver"),
)
_STATISTICS_GEN = Node(
    "StatisticsGen",
    "tfx.components:StatisticsGen",
    {"examples": "TFRecordGen.examples"},
    arguments=arguments.of_statistics_gen,
    outputs=("statistics",),
    packages=_VALIDATION,
)

NODES = (
    _TFRECORD_GEN,
    Node(
        "ImportSchemaGen",
        "tfx.components.schema_gen.import_schema_gen.component:ImportSchemaGen",
        arguments=arguments.of_import_schema_gen,
        outputs=("schema",),
    ),
    _STATISTICS_GEN,
    replace(
        _TFRECORD_GEN,
        id="ServingTFRecordGen",
        arguments=arguments.of_serving_tfrecord_gen,
        is_in=_has_serving,
    ),
    replace(
        _STATISTICS_GEN,
        id="ServingStatisticsGen",
        inputs={"examples": "ServingTFRecordGen.examples"},
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
        code=_modules("data_verdict.executor", "data_verdict.driver"),
    ),
    Node(
        "DataGate",
        "components.data_gate.component:DataGate",
        {"verdict": "DataVerdict.verdict"},
        code=_modules("data_gate.executor"),
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
        code=_modules("accept_data.executor"),
    ),
    Node(
        "Transform",
        "tfx.components:Transform",
        {"examples": "TFRecordGen.examples", "schema": "ImportSchemaGen.schema"},
        arguments.of_transform,
        outputs=("transform_graph", "transformed_examples", "updated_analyzer_cache"),
        after=("DataGate",),
        packages=("tfx", "tensorflow", "tensorflow-transform"),
        code=_preprocessing_module,
    ),
    Node(
        "WarmStartModel",
        "tfx.dsl.components.common.resolver:Resolver",
        arguments=arguments.of_warm_start_resolver,
        outputs=("model",),
        is_in=lambda config: config.train.warm_start in TRAINED_BEFORE,
    ),
    Node(
        "Trainer",
        "tfx.components:Trainer",
        {
            "examples": "Transform.transformed_examples",
            "transform_graph": "Transform.transform_graph",
            "schema": "ImportSchemaGen.schema",
            "base_model": "WarmStartModel.model",
        },
        arguments.of_trainer,
        outputs=("model", "model_run"),
        after=("DataGate",),
        packages=("tfx", "tensorflow", "tf-keras"),
        code=_training_modules,
    ),
    Node(
        "LatestBlessedModel",
        "tfx.dsl.components.common.resolver:Resolver",
        arguments=arguments.of_baseline,
        outputs=("model", "model_blessing"),
        in_service="components.baseline_model.component:LatestBlessedModel",
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
        code=_modules("evaluator.component", "evaluator.count_metrics"),
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
        code=_modules("model_verdict.executor", "model_verdict.driver"),
    ),
    Node(
        "Pusher",
        "components.pusher.component:Pusher",
        {"model": "Trainer.model", "model_blessing": "ModelVerdict.blessing"},
        arguments.of_pusher,
        outputs=("pushed_model",),
        code=_modules("pusher.executor"),
    ),
)

# Ids of nodes that other modules refer to.
INGESTION, STATISTICS, PUSHER = "TFRecordGen", "StatisticsGen", "Pusher"
SERVING_INGESTION = "ServingTFRecordGen"


def modules_to_preload() -> list[str]:
    """Returns the modules that a process needs to build the graph and run its nodes."""
    components = [node.component.partition(":")[0] for node in NODES]
    return ["pipeline.graph.create_pipeline", PREPROCESSING, TRAINING, *components]
