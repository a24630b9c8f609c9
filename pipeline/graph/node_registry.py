"""Node registry: component, inputs, arguments and code of every node.

``NODES`` is in topological order. Nothing of TFX is imported here, since validation and
the cache read it too. ``custom_nodes`` adds the nodes of the config as entries of the
same form. Properties of a component's class, such as that it is a gate, are in
``sluice.node_kinds``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.config.config import Config
from pipeline.config.train import TRAINED_BEFORE
from pipeline.graph import arguments
from pipeline.graph.arguments import GraphContext
from sluice.node_kinds import (
    NEWEST_INGESTION,
    RETRAIN,
    RETRAIN_GATE,
    SERVED_EVALUATOR,
)
from sluice.splits import SERVING

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
      after: nodes that it waits for without reading their outputs.
      condition: ``<node id>.<output>.<property>``: it is skipped unless that is 1;
        ignored where the pipeline does not have that node.
      code: returns the import paths of functions that it runs with a config.
      is_in: whether a config's pipeline has the node.
    """

    id: str
    component: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    arguments: Callable[[GraphContext], Mapping[str, Any]] = lambda context: {}
    after: Names = ()
    condition: str = ""
    code: Callable[[Config], Names] = lambda config: ()
    is_in: Callable[[Config], bool] = lambda config: True
    in_service: str | None = None

    @property
    def upstream(self) -> list[str]:
        """The ids of all nodes that it waits for."""
        producers = (source.partition(".")[0] for source in self.inputs.values())
        conditions = filter(None, [self.condition.partition(".")[0]])
        return list(dict.fromkeys((*producers, *self.after, *conditions)))

    def modules(self, config: Config) -> list[str]:
        """Returns the modules that it runs with a config, without TFX's."""
        found = (self.component, *self.code(config))
        return [path.partition(":")[0] for path in found if not path.startswith("tfx.")]


def _training_functions(config: Config) -> Names:
    callbacks = (callback.function for callback in config.train.callbacks)
    metrics = _own(config.train.metrics or ())
    return (arguments.RUN_FN, config.model_path, *callbacks, *metrics)


def _own(metrics: Iterable[Any]) -> Names:
    return tuple(item.class_name for item in metrics if ":" in item.class_name)


def _evaluates_served(config: Config) -> bool:
    return config.retrain is not None and config.retrain.metric_drop is not None


_TFRECORD_GEN = Node(
    "TFRecordGen",
    "components.tfrecord_gen.component:TFRecordGen",
    arguments=lambda context: {"settings": arguments.ingestion_of(context.config)},
)
_STATISTICS_GEN = Node(
    "StatisticsGen",
    "components.statistics_gen:StatisticsGen",
    {"examples": "TFRecordGen.examples"},
    arguments=arguments.of_statistics_gen,
)
_EVALUATOR = Node(
    "Evaluator",
    "components.evaluator:Evaluator",
    {
        "examples": "TFRecordGen.examples",
        "model": "Trainer.model",
        "baseline_model": "LatestBlessedModel.model",
        "schema": "ImportSchemaGen.schema",
    },
    arguments.of_evaluator,
    code=lambda config: _own(config.evaluate.metrics),
)
_TUNER = Node(
    "Tuner",
    "components.tuner:Tuner",
    {
        "examples": "TFRecordGen.examples",
        "transform_graph": "Transform.transform_graph",
        "schema": "ImportSchemaGen.schema",
        "base_model": "WarmStartModel.model",
    },
    arguments.of_tuner,
    after=("DataGate",),
    code=lambda config: (arguments.TUNER_FN, *_training_functions(config)),
    is_in=lambda config: config.tune is not None,
)

_PUSHER = Node(
    "Pusher",
    "components.pusher.component:Pusher",
    {
        "model": "Trainer.model",
        "model_blessing": "ModelVerdict.blessing",
        "infra_blessing": "ServingCheck.blessing",
    },
    arguments.of_pusher,
)

NODES = (
    _TFRECORD_GEN,
    Node(
        "ImportSchemaGen",
        "tfx.components.schema_gen.import_schema_gen.component:ImportSchemaGen",
        arguments=lambda context: {
            "schema_file": context.stored(context.config.schema_path, "schema")
        },
    ),
    _STATISTICS_GEN,
    replace(
        _TFRECORD_GEN,
        id="ServingTFRecordGen",
        arguments=lambda context: {
            "settings": arguments.ingestion_of(context.config, SERVING)
        },
        is_in=lambda config: config.data.serving is not None,
    ),
    replace(
        _STATISTICS_GEN,
        id="ServingStatisticsGen",
        inputs={"examples": "ServingTFRecordGen.examples"},
        is_in=lambda config: config.data.serving is not None,
    ),
    Node(
        "ExampleValidator",
        "tfx.components:ExampleValidator",
        {"statistics": "StatisticsGen.statistics", "schema": "ImportSchemaGen.schema"},
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
    ),
    Node(
        "DataGate",
        "components.data_gate:DataGate",
        {"verdict": "DataVerdict.verdict"},
    ),
    Node(
        "AcceptData",
        "components.accept_data:AcceptData",
        {
            "statistics": "StatisticsGen.statistics",
            "quarantine": "TFRecordGen.quarantine",
            "verdict": "DataVerdict.verdict",
        },
        lambda context: {"baseline_store": context.locations.baseline_store},
        after=("DataGate",),
    ),
    replace(
        _TFRECORD_GEN,
        id=NEWEST_INGESTION,
        arguments=arguments.of_newest_ingestion,
        is_in=_evaluates_served,
    ),
    Node(
        "ServedModel",
        "tfx.dsl.components.common.resolver:Resolver",
        arguments=arguments.of_served_model,
        in_service="components.baseline_model.component:LatestBlessedModel",
        is_in=_evaluates_served,
    ),
    replace(
        _EVALUATOR,
        id=SERVED_EVALUATOR,
        inputs={
            "examples": f"{NEWEST_INGESTION}.examples",
            "model": "ServedModel.model",
            "schema": "ImportSchemaGen.schema",
        },
        after=("DataGate",),
        is_in=_evaluates_served,
    ),
    Node(
        RETRAIN_GATE,
        "components.retrain_decision.component:RetrainGate",
        {
            "statistics": "StatisticsGen.statistics",
            "quarantine": "TFRecordGen.quarantine",
            "requests": "ServingStatisticsGen.statistics",
            "evaluation": f"{SERVED_EVALUATOR}.evaluation",
        },
        arguments.of_retrain_gate,
        after=("DataGate",),
        is_in=lambda config: config.retrain is not None,
    ),
    Node(
        "Transform",
        "tfx.components:Transform",
        {"examples": "TFRecordGen.examples", "schema": "ImportSchemaGen.schema"},
        arguments.of_transform,
        after=("DataGate",),
        # What reads its outputs is skipped with it.
        condition=f"{RETRAIN_GATE}.decision.{RETRAIN}",
        code=lambda config: (config.preprocessing_path,),
    ),
    Node(
        "WarmStartModel",
        "tfx.dsl.components.common.resolver:Resolver",
        arguments=arguments.of_warm_start_resolver,
        is_in=lambda config: config.train.warm_start in TRAINED_BEFORE,
    ),
    _TUNER,
    replace(
        _TUNER,
        id="Trainer",
        component="tfx.components:Trainer",
        inputs={**_TUNER.inputs, "hyperparameters": "Tuner.best_hyperparameters"},
        arguments=arguments.of_trainer,
        code=_training_functions,
        is_in=lambda config: True,
    ),
    Node(
        "LatestBlessedModel",
        "tfx.dsl.components.common.resolver:Resolver",
        arguments=arguments.of_baseline,
        in_service="components.baseline_model.component:LatestBlessedModel",
    ),
    _EVALUATOR,
    Node(
        "ModelVerdict",
        "components.model_verdict.component:ModelVerdict",
        {
            "evaluation": "Evaluator.evaluation",
            "model": "Trainer.model",
            "baseline_model": "LatestBlessedModel.model",
        },
        arguments.of_model_verdict,
    ),
    Node(
        "Exports",
        "components.exports.component:Exports",
        {
            "model": "Trainer.model",
            "model_run": "Trainer.model_run",
            "model_blessing": "ModelVerdict.blessing",
            "transform_graph": "Transform.transform_graph",
            "examples": "TFRecordGen.examples",
            "hyperparameters": "Tuner.best_hyperparameters",
        },
        arguments.of_exports,
        code=lambda config: (arguments.EXPORT_FN, config.model_path),
        is_in=lambda config: bool(config.export),
    ),
    Node(
        "ServingCheck",
        "components.serving_check.component:ServingCheck",
        {
            "model": "Trainer.model",
            "exported": "Exports.blessing",
            "examples": "TFRecordGen.examples",
        },
        arguments.of_serving_check,
        code=lambda config: (arguments.SERVER,),
        is_in=lambda config: config.serving_check is not None,
    ),
    replace(_PUSHER, is_in=lambda config: config.serving_check is not None),
    replace(
        _PUSHER,
        inputs={**_PUSHER.inputs, "infra_blessing": "Exports.blessing"},
        is_in=lambda config: config.serving_check is None,
    ),
)

# Ids of nodes that other modules refer to.
INGESTION, STATISTICS, PUSHER = "TFRecordGen", "StatisticsGen", "Pusher"
TUNER, TRAINER, MODEL_VERDICT = "Tuner", "Trainer", "ModelVerdict"
SERVING_INGESTION, SERVING_CHECK = "ServingTFRecordGen", "ServingCheck"


def modules_to_preload() -> list[str]:
    """Returns the modules that a process needs to build the graph and run its nodes."""
    used = [arguments.RUN_FN, *(node.component for node in NODES)]
    modules = [path.partition(":")[0] for path in used]
    return ["pipeline.graph.create_pipeline", *modules]
