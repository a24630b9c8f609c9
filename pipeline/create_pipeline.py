"""The only place where the graph is drawn; every runner takes what it returns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.components import (
    Evaluator,
    ExampleValidator,
    StatisticsGen,
    Trainer,
    Transform,
)
from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import example_gen_pb2, trainer_pb2, transform_pb2
from tfx.types import Channel, standard_artifacts

from components.data_gate.component import DataGate
from components.data_verdict.component import DataVerdict
from components.example_gen.component import ImportExampleGen
from components.model_verdict.component import ModelVerdict
from components.model_verdict.threshold import Threshold
from components.pusher.component import Pusher
from pipeline.config import Config
from pipeline.eval_config import eval_config
from pipeline.feature_set import FeatureSet
from pipeline.fingerprint import stamp
from pipeline.models.registry import import_path, module_name
from pipeline.places import Places, local_places
from pipeline.resolve_features import feature_set_of
from pipeline.stored_inputs import store_input
from schemas.loader import load
from sluice.project import own_root
from sluice.workspace import locate

BASELINE_RESOLVER = "LatestBlessedModel"
PREPROCESSING = "pipeline.preprocessing:preprocessing_fn"


def create_pipeline(config: Config, places: Places | None = None) -> Pipeline:
    """Returns the pipeline of a config, of new component objects at every call.

    Components are never shared between calls because ``Pipeline`` changes them.

    Args:
      config: a validated config.
      places: where inputs are read and outputs go; None for the local workspace.

    Raises:
      ConfigError: the schema is not one, or user code is not valid Python.
    """
    places = places or local_places(config, locate(config.root, config.name))
    feature_set = feature_set_of(config, load(config.schema_path))
    roots = list(dict.fromkeys([own_root(), config.root]))
    splits = [name for name, pattern in config.data.splits if pattern]
    judged_split = "test" if "test" in splits else "eval"

    example_gen = stamp(
        ImportExampleGen(
            input_base=str(config.data_dir),
            input_config=example_gen_pb2.Input(
                splits=[
                    example_gen_pb2.Input.Split(name=name, pattern=pattern)
                    for name, pattern in config.data.splits
                    if pattern
                ]
            ),
        ),
        packages=["tfx"],
        code=["components.example_gen.executor", "components.example_gen.driver"],
        roots=roots,
    )
    statistics_gen = stamp(
        StatisticsGen(examples=example_gen.outputs["examples"]),
        packages=["tfx", "tensorflow-data-validation"],
    )
    schema_gen = stamp(
        ImportSchemaGen(
            schema_file=str(
                store_input(config.schema_path, places.inputs_dir, "schema")
            )
        ),
        packages=["tfx"],
    )
    example_validator = stamp(
        ExampleValidator(
            statistics=statistics_gen.outputs["statistics"],
            schema=schema_gen.outputs["schema"],
        ),
        packages=["tfx", "tensorflow-data-validation"],
    )
    data_verdict = stamp(
        DataVerdict(
            statistics=statistics_gen.outputs["statistics"],
            anomalies=example_validator.outputs["anomalies"],
            splits=splits,
        ),
        packages=["tfx"],
        code=["components.data_verdict.executor"],
        roots=roots,
    )
    data_gate = stamp(
        DataGate(verdict=data_verdict.outputs["verdict"]),
        packages=["tfx"],
        code=["components.data_gate.executor"],
        roots=roots,
    )
    transform = _transform(config, feature_set, example_gen, schema_gen, roots)
    transform.add_upstream_node(data_gate)
    trainer = _trainer(config, feature_set, transform, schema_gen, roots)
    trainer.add_upstream_node(data_gate)
    baseline = Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
    ).with_id(BASELINE_RESOLVER)
    evaluator = stamp(
        Evaluator(
            examples=example_gen.outputs["examples"],
            example_splits=[judged_split],
            model=trainer.outputs["model"],
            baseline_model=baseline.outputs["model"],
            schema=schema_gen.outputs["schema"],
            eval_config=eval_config(
                [
                    (metric.class_name, metric.name, metric.params)
                    for metric in config.evaluate.metrics
                ],
                config.evaluate.slices,
                feature_set.label,
            ),
        ),
        packages=["tfx", "tensorflow", "tensorflow-model-analysis"],
    )
    model_verdict = stamp(
        ModelVerdict(
            evaluation=evaluator.outputs["evaluation"],
            model=trainer.outputs["model"],
            baseline_model=baseline.outputs["model"],
            thresholds=thresholds_of(config),
            classes=feature_set.label.class_names,
            split=judged_split,
        ),
        packages=["tfx", "tensorflow-model-analysis"],
        code=["components.model_verdict.executor"],
        roots=roots,
    )
    pusher = stamp(
        Pusher(
            model=trainer.outputs["model"],
            blessing=model_verdict.outputs["blessing"],
            serving_dir=places.serving_dir,
        ),
        packages=["tfx"],
        code=["components.pusher.executor"],
        roots=roots,
    )
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=places.pipeline_root,
        components=[
            example_gen,
            statistics_gen,
            schema_gen,
            example_validator,
            data_verdict,
            data_gate,
            transform,
            trainer,
            baseline,
            evaluator,
            model_verdict,
            pusher,
        ],
        enable_cache=True,
        beam_pipeline_args=list(places.beam_args),
        metadata_connection_config=(
            metadata.sqlite_metadata_connection_config(str(places.metadata_db))
            if places.metadata_db
            else None
        ),
    )


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


def _transform(
    config: Config,
    feature_set: FeatureSet,
    example_gen: Any,
    schema_gen: Any,
    roots: list[Path],
) -> Any:
    function = config.preprocessing or PREPROCESSING
    transform = Transform(
        examples=example_gen.outputs["examples"],
        schema=schema_gen.outputs["schema"],
        preprocessing_fn=function.replace(":", "."),
        # The test split is evaluated from raw examples, as a client sends them.
        splits_config=transform_pb2.SplitsConfig(
            analyze=["train"], transform=["train", "eval"]
        ),
        disable_statistics=True,
        custom_config={"feature_set": feature_set.to_dict()},
    )
    return stamp(
        transform,
        packages=["tfx", "tensorflow", "tensorflow-transform"],
        code=[function.partition(":")[0]],
        roots=roots,
    )


def _trainer(
    config: Config,
    feature_set: FeatureSet,
    transform: Any,
    schema_gen: Any,
    roots: list[Path],
) -> Any:
    trainer = Trainer(
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        run_fn="pipeline.training.run_fn",
        train_args=trainer_pb2.TrainArgs(splits=["train"]),
        eval_args=trainer_pb2.EvalArgs(splits=["eval"]),
        custom_config={
            "feature_set": feature_set.to_dict(),
            "own_preprocessing": config.preprocessing is not None,
            "model": import_path(config.model),
            "model_params": json.loads(json.dumps(config.model_params)),
            "train": config.train.model_dump(),
        },
    )
    return stamp(
        trainer,
        packages=["tfx", "tensorflow", "tf-keras"],
        code=["pipeline.training", module_name(config.model)],
        roots=roots,
    )
