"""Arguments of the graph's components, built from the config.

Each ``of_<node>`` returns the arguments that are not outputs of other nodes. TFX is
imported only by those that need its types.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.data_verdict.policy import DataPolicy, Policy, Settings
from components.model_verdict.threshold import Settings as ModelVerdictSettings
from components.tfrecord_gen.settings import ImageCheck, Ingestion
from pipeline.config.config import Config
from pipeline.config.features import Image, Label
from pipeline.graph.locations import Locations
from schemas.loader import load
from sluice.errors import ConfigError
from sluice.splits import SERVING

Arguments = dict[str, Any]


@dataclass(frozen=True)
class GraphContext:
    """Inputs of the functions below.

    Attributes:
      config: a validated config.
      locations: directories and URIs of inputs and outputs.
      accept_data: the reason of ``--accept-data``, which overrides the data gate.
    """

    config: Config
    locations: Locations
    accept_data: str | None = None

    @property
    def judged_split(self) -> str:
        """The split that the model gate evaluates."""
        return "test" if "test" in self.config.data.split_names else "eval"


def of_tfrecord_gen(context: GraphContext) -> Arguments:
    """Files, splits and checks of the records."""
    return {"settings": ingestion_of(context.config)}


def of_serving_tfrecord_gen(context: GraphContext) -> Arguments:
    """The same for serving requests, which are one split."""
    return {"settings": ingestion_of(context.config, SERVING)}


def ingestion_of(config: Config, split: str | None = None) -> Ingestion:
    """Returns the settings of an ingestion: of the data, or of serving requests."""
    data, limits = config.data, config.examples.images
    serving = {SERVING: data.serving or ""}
    images = [
        ImageCheck(
            feature=name,
            is_sensitive=name in config.sensitive,
            decoded_channels=spec.channels,
            **limits.model_dump(),
        )
        for name, spec in (config.features or {}).items()
        if limits and isinstance(spec, Image)
    ]
    return Ingestion(
        base=config.data_uri,
        patterns=serving if split == SERVING else data.patterns,
        hash_splits=None if split == SERVING else data.hash_splits,
        images=tuple(images),
        max_record_bytes=config.examples.max_record_bytes,
        window=config.examples.window,
        complete_when=config.examples.complete_when,
    )


def of_import_schema_gen(context: GraphContext) -> Arguments:
    """The reviewed schema, copied to a path that contains its digest."""
    path = context.locations.store_input(context.config.schema_path, "schema")
    return {"schema_file": path}


def of_statistics_gen(context: GraphContext) -> Arguments:
    """Quantiles for the report: with 250, a bar of a histogram is half a point off.

    In a record they take 40 kB per feature and split, so wide data has fewer of them.
    """
    from tensorflow_data_validation import StatsOptions

    features = len(load(context.config.schema_path).feature)
    quantiles = max(10, min(250, 10_000 // max(features, 1)))
    return {"stats_options": StatsOptions(num_quantiles_histogram_buckets=quantiles)}


def of_data_verdict(context: GraphContext) -> Arguments:
    """The policy of the data gate."""
    config = context.config
    policy = config.validate_data.model_dump(include=set(DataPolicy.model_fields))
    corrupt = config.examples.max_corrupt_fraction
    settings = Settings(
        splits=tuple(config.data.split_names),
        policy=Policy(**policy, max_corrupt_fraction=corrupt),
        sensitive=tuple(sorted(config.sensitive)),
        hash_splits=config.data.hash_splits,
    )
    return {
        "settings": settings,
        "baseline_store": context.locations.baseline_store,
        "override": context.accept_data,
    }


def of_accept_data(context: GraphContext) -> Arguments:
    """The baseline store that records accepted data."""
    return {"baseline_store": context.locations.baseline_store}


def of_transform(context: GraphContext) -> Arguments:
    """The preprocessing function and the splits that it transforms."""
    from tfx.proto import transform_pb2

    config = context.config
    function = config.preprocessing or (
        "pipeline.training.preprocessing:preprocessing_fn"
    )
    return {
        "preprocessing_fn": function.replace(":", "."),
        # The test split is evaluated from raw examples, as a client sends them.
        "splits_config": transform_pb2.SplitsConfig(
            analyze=["train"], transform=["train", "eval"]
        ),
        "disable_statistics": True,
        "custom_config": {"feature_set": context.config.feature_set.model_dump()},
    }


def of_trainer(context: GraphContext) -> Arguments:
    """The training function with its model and settings."""
    from tfx.proto import trainer_pb2

    config, checkpoints = context.config, context.locations.checkpoints
    return {
        "run_fn": "pipeline.training.run_fn.run_fn",
        "train_args": trainer_pb2.TrainArgs(splits=["train"]),
        "eval_args": trainer_pb2.EvalArgs(splits=["eval"]),
        "custom_config": {
            "feature_set": context.config.feature_set.model_dump(),
            "own_preprocessing": config.preprocessing is not None,
            "model": config.model_path,
            "model_params": _model_params(context),
            "train": config.train.model_dump(),
            "warm_start_path": _warm_start_path(context),
            **({"checkpoints": checkpoints} if checkpoints else {}),
        },
    }


def _model_params(context: GraphContext) -> Arguments:
    """The model's parameters; weights at a path that contains their digest."""
    params, weights = context.config.model_params, context.config.weights_file
    if weights is None:
        return params
    return {**params, "weights": context.locations.store_input(weights, "weights")}


def _warm_start_path(context: GraphContext) -> str | None:
    """A copy of ``train.warm_start``, if it is a path; it contains the digest."""
    path = context.config.warm_start_path
    return None if path is None else context.locations.store_input(path, "models")


def of_warm_start_resolver(context: GraphContext) -> Arguments:
    """The strategy that finds the model whose weights the training starts from.

    Raises:
      ConfigError: a cloud service cannot find it: it does not run our strategies.
    """
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.types import Channel, standard_artifacts

    from components.baseline_model.resolver_strategies import TrainedModel

    source = context.config.train.warm_start
    if source == "latest_blessed":
        return _blessed_model(context)
    strategy: Arguments = {"strategy_class": LatestArtifactStrategy}
    if not context.locations.is_service:
        served_in = {"served_in": context.locations.serving_dir}
        given = served_in if source == "served" else {}
        strategy = {"strategy_class": TrainedModel, "config": given}
    elif source == "served":
        raise ConfigError(
            "a cloud service cannot look up the served model",
            where="train.warm_start",
            expected="latest_blessed, latest or null",
            actual="served",
        )
    return {**strategy, "model": Channel(type=standard_artifacts.Model)}


def of_baseline(context: GraphContext) -> Arguments:
    """The strategy that finds the baseline; in a service the model store with it."""
    if context.locations.is_service:
        return {"serving_dir": context.locations.serving_dir, "baseline": ""}
    return _blessed_model(context)


def _blessed_model(context: GraphContext) -> Arguments:
    """The strategy of a resolver of the latest blessed model.

    Cloud services support only TFX's own, which takes a retired or missing model too.
    """
    from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
        LatestBlessedModelStrategy,
    )
    from tfx.types import Channel, standard_artifacts

    from components.baseline_model.resolver_strategies import LatestUsableBlessedModel

    strategy: Arguments = {"strategy_class": LatestBlessedModelStrategy}
    if not context.locations.is_service:
        strategy = {"strategy_class": LatestUsableBlessedModel}
    return {
        **strategy,
        "model": Channel(type=standard_artifacts.Model),
        "model_blessing": Channel(type=standard_artifacts.ModelBlessing),
    }


def of_evaluator(context: GraphContext) -> Arguments:
    """Metrics, slices and split of the evaluation."""
    given = context.config.evaluate
    metrics = [(item.class_name, item.name, item.params) for item in given.metrics]
    label = context.config.feature_set.label
    return {
        "example_splits": [context.judged_split],
        "eval_config": eval_config(
            metrics, given.slices, label, intervals=given.confidence_intervals
        ),
    }


def of_model_verdict(context: GraphContext) -> Arguments:
    """The thresholds of the model gate."""
    settings = ModelVerdictSettings(
        thresholds=context.config.evaluate.thresholds,
        classes=tuple(context.config.feature_set.label.class_names),
        split=context.judged_split,
    )
    return {"settings": settings}


def of_pusher(context: GraphContext) -> Arguments:
    """The serving directory."""
    from tfx.proto import pusher_pb2

    filesystem = pusher_pb2.PushDestination.Filesystem(
        base_directory=context.locations.serving_dir
    )
    return {
        "push_destination": pusher_pb2.PushDestination(filesystem=filesystem),
        "custom_config": {"workspace_id": context.locations.workspace_id},
    }


_PREDICTION_KEY = "probabilities"
_CONFUSION = "MultiClassConfusionMatrixPlot"


def eval_config(
    metrics: Sequence[tuple[str, str | None, dict[str, Any]]],
    slices: Sequence[Sequence[str]],
    label: Label,
    *,
    intervals: bool = False,
) -> Any:
    """Returns a ``tfma.EvalConfig`` with a candidate and a baseline model.

    It has metrics and slices, and what the report draws: the histogram of predictions,
    and for more than two classes the confusion matrix. The model verdict applies the
    thresholds, see docs/adr/0001-model-verdict.md.

    Args:
      metrics: class name, result name (None: TFMA's own) and parameters of each.
      slices: lists of features to slice by; the overall slice is always there.
      label: the label and its classes.
      intervals: whether metrics have confidence intervals.
    """
    from google.protobuf import json_format
    from tensorflow_model_analysis.proto import config_pb2

    from components.evaluator.count_metrics import metric_configs

    classes = len(label.class_names)
    counts = metric_configs(classes, _PREDICTION_KEY)
    if classes > 2 and _CONFUSION not in {name for name, _, _ in metrics}:
        counts.append(_metric(_CONFUSION, None, {}))
    model = {
        "signature_name": "serving_default",
        "prediction_key": _PREDICTION_KEY,
        "label_key": label.key,
        "preprocessing_function_names": ["transform_features"],
        "model_type": "tf_generic",
    }
    document: dict[str, Any] = {
        "model_specs": [model],
        "metrics_specs": [
            {"metrics": [_metric(*metric) for metric in metrics]},
            {"metrics": counts},
        ],
        "slicing_specs": [{}, *({"feature_keys": list(keys)} for keys in slices)],
    }
    if intervals:
        document["options"] = {"compute_confidence_intervals": True}
    return json_format.ParseDict(document, config_pb2.EvalConfig())


def _metric(name: str, result: str | None, params: dict[str, Any]) -> dict[str, str]:
    config = {**({"name": result} if result else {}), **params}
    return {"class_name": name, **({"config": json.dumps(config)} if config else {})}
