"""The only place where the graph is drawn; every runner takes what it returns."""

from __future__ import annotations

from typing import Any

from tfx.components import Trainer, Transform
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import pusher_pb2, trainer_pb2, transform_pb2
from tfx.types import Channel, standard_artifacts

from components.baseline.resolver_strategy import LatestIntactBlessedModel
from components.evaluator.component import Evaluator
from components.model_verdict.component import ModelVerdict
from components.model_verdict.threshold import Threshold
from components.pusher.component import Pusher
from pipeline.config.config import Config
from pipeline.config.resolve_features import feature_set_of
from pipeline.graph.draw_data import DataNodes, draw_data
from pipeline.graph.eval_config import eval_config
from pipeline.graph.graph_context import GraphContext
from pipeline.graph.locations import Locations, local_locations
from schemas.loader import load
from sluice.workspace import locate

BASELINE_RESOLVER = "LatestBlessedModel"
PREPROCESSING = "pipeline.training.preprocessing:preprocessing_fn"


def create_pipeline(
    config: Config, locations: Locations | None = None, accept_data: str | None = None
) -> Pipeline:
    """Returns the pipeline of a config, of new component objects at every call.

    Components are never shared between calls because ``Pipeline`` changes them.

    Args:
      config: a validated config.
      locations: where inputs are read and outputs go; None for the local workspace.
      accept_data: why a person lets the data pass this once, whatever is wrong with it.

    Raises:
      ConfigError: the schema is not one, or user code is not valid Python.
    """
    locations = locations or local_locations(config, locate(config.root, config.name))
    feature_set = feature_set_of(config, load(config.schema_path))
    context = GraphContext(config, locations, feature_set, accept_data)
    data = draw_data(context)
    transform, trainer = _train(context, data)
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=locations.pipeline_root,
        components=[
            *data.nodes,
            transform,
            trainer,
            *_judge_and_push(context, data, trainer),
        ],
        enable_cache=True,
        beam_pipeline_args=list(locations.beam_args),
        metadata_connection_config=(
            metadata.sqlite_metadata_connection_config(str(locations.metadata_db))
            if locations.metadata_db
            else None
        ),
    )


def _train(context: GraphContext, data: DataNodes) -> tuple[Any, Any]:
    """Returns Transform and Trainer, which wait for the data gate."""
    config = context.config
    preprocessing = config.preprocessing or PREPROCESSING
    transform = Transform(
        examples=data.tfrecord_gen.outputs["examples"],
        schema=data.schema_gen.outputs["schema"],
        preprocessing_fn=preprocessing.replace(":", "."),
        # The test split is evaluated from raw examples, as a client sends them.
        splits_config=transform_pb2.SplitsConfig(
            analyze=["train"], transform=["train", "eval"]
        ),
        disable_statistics=True,
        custom_config={"feature_set": context.feature_set.to_dict()},
    )
    trainer = Trainer(
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=data.schema_gen.outputs["schema"],
        run_fn="pipeline.training.run_fn.run_fn",
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config={
            "feature_set": context.feature_set.to_dict(),
            "own_preprocessing": config.preprocessing is not None,
            "model": config.model_path,
            "model_params": config.model_params,
            "train": config.train.model_dump(),
        },
    )
    for node in (transform, trainer):
        node.add_upstream_node(data.data_gate)
    return (
        context.stamp(
            transform,
            ["tfx", "tensorflow", "tensorflow-transform"],
            [preprocessing.partition(":")[0]],
        ),
        context.stamp(
            trainer,
            ["tfx", "tensorflow", "tf-keras"],
            ["pipeline.training.run_fn", config.model_module],
        ),
    )


def _judge_and_push(context: GraphContext, data: DataNodes, trainer: Any) -> list[Any]:
    """Returns the baseline's resolver, Evaluator, ModelVerdict and Pusher."""
    config, label = context.config, context.feature_set.label
    baseline = _baseline(context.locations)
    metrics = [
        (metric.class_name, metric.name, metric.params)
        for metric in config.evaluate.metrics
    ]
    evaluator = Evaluator(
        examples=data.tfrecord_gen.outputs["examples"],
        example_splits=[context.judged_split],
        model=trainer.outputs["model"],
        baseline_model=baseline.outputs["model"],
        schema=data.schema_gen.outputs["schema"],
        eval_config=eval_config(metrics, config.evaluate.slices, label),
    )
    model_verdict = ModelVerdict(
        evaluation=evaluator.outputs["evaluation"],
        model=trainer.outputs["model"],
        baseline_model=baseline.outputs["model"],
        thresholds=thresholds_of(config),
        classes=label.class_names,
        split=context.judged_split,
    )
    pusher = Pusher(
        model=trainer.outputs["model"],
        model_blessing=model_verdict.outputs["blessing"],
        push_destination=pusher_pb2.PushDestination(
            filesystem=pusher_pb2.PushDestination.Filesystem(
                base_directory=context.locations.serving_dir
            )
        ),
        custom_config={"workspace_id": context.locations.workspace_id},
    )
    analysis = ["tfx", "tensorflow", "tensorflow-model-analysis"]
    return [
        baseline,
        context.stamp(
            evaluator,
            analysis,
            ["components.evaluator.executor", "components.model_verdict.class_counts"],
        ),
        context.stamp(
            model_verdict,
            analysis,
            ["components.model_verdict.executor", "components.model_verdict.driver"],
        ),
        context.stamp(pusher, ["tfx"], ["components.pusher.executor"]),
    ]


def _baseline(locations: Locations) -> Any:
    """Returns the resolver of the model that a new one is compared with.

    A service compiles TFX's strategy and runs none of ours: there the latest blessed
    model is the baseline though it may be retired or damaged.
    """
    strategy: dict[str, Any] = {"strategy_class": LatestBlessedModelStrategy}
    if not locations.is_service:
        strategy = {
            "strategy_class": LatestIntactBlessedModel,
            "config": {"restores": locations.restores_baseline},
        }
    return Resolver(
        **strategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
    ).with_id(BASELINE_RESOLVER)


def thresholds_of(config: Config) -> list[Threshold]:
    """Returns the model gate's thresholds in the form in which the node takes them."""
    return [
        Threshold(
            metric=item.metric,
            slice=list(item.slice) if isinstance(item.slice, tuple) else item.slice,
            lower_bound=item.lower_bound,
            upper_bound=item.upper_bound,
            direction=item.change.direction if item.change else None,
            absolute=item.change.absolute if item.change else None,
            relative=item.change.relative if item.change else None,
            min_examples_per_class=item.min_examples_per_class,
        )
        for item in config.evaluate.thresholds
    ]
