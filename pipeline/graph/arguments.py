"""Arguments of the graph's components, from the config and the locations.

Each ``of_<node>`` returns the arguments that are not outputs of other nodes. TFX is
imported only by those that need its types.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.settings import DataPolicy, Policy, Settings
from components.model_verdict.settings import Settings as ModelVerdictSettings
from components.serving_check.settings import Settings as ServingSettings
from components.tfrecord_gen.settings import (
    CompleteWhen,
    ImageCheck,
    Ingestion,
    LabelCheck,
    PixelsCheck,
)
from pipeline.config.config import Config
from pipeline.config.data import REQUESTS, RequestLogs
from pipeline.config.features import Image, RawPixels
from pipeline.config.resolve_label import is_per_class
from pipeline.config.tune import first_values, with_values
from pipeline.graph.eval_config import eval_config
from pipeline.graph.locations import Locations
from schemas.loader import (
    class_values,
    is_counted,
    list_features,
    list_types,
    load,
)
from serving.model_store import store_at
from sluice.errors import ConfigError
from sluice.splits import SERVING
from sluice.workspace import locate

if TYPE_CHECKING:
    from tensorflow_data_validation import StatsOptions

Arguments = dict[str, Any]

# The functions that train, and search.
RUN_FN = "pipeline.training.run_fn:run_fn"
TUNER_FN = "pipeline.training.tuning:tuner_fn"
# The function that exports the trained model.
EXPORT_FN = "pipeline.training.exports.export_fn:export_fn"
# What the serving check starts: its modules are in the node's code.
SERVER = "serving.server.__main__:main"


# Recorded requests, below their folder in the workspace, and for how many days.
_REQUEST_FILES = "{YYYY}-{MM}-{DD}/*.tfrecord.gz"
_REQUEST_DAYS = 30

# What does not repeat the Transform or a search when it is changed.
_DECISION = {"label": {"threshold"}}


@dataclass(frozen=True)
class GraphContext:
    """Inputs of the functions below.

    Attributes:
      config: a validated config.
      locations: directories and URIs of inputs and outputs.
      accept_data: the reason of ``--accept-data``, which overrides the data gate.
      trial: whether the model is judged and not blessed.
    """

    config: Config
    locations: Locations
    accept_data: str | None = None
    trial: bool = False

    @property
    def judged_split(self) -> str:
        """The split that the model gate evaluates."""
        return "test" if "test" in self.config.data.split_names else "eval"

    def stored(self, path: Path | None, kind: str) -> str | None:
        """Returns a copy of an input, at a path that contains its digest."""
        return None if path is None else self.locations.store_input(path, kind)


def ingestion_of(config: Config, split: str | None = None) -> Ingestion:
    """Returns the settings of an ingestion: of the data, or of serving requests.

    Args:
      config: a validated config.
      split: ``serving`` for the requests.
    """
    schema = load(config.schema_path)
    label = None if split == SERVING else _label_check(config, schema)
    found = source_of(config, split)
    change = {"types": list_types(schema), "lists": list_features(schema)}
    return found.model_copy(update={**change, "label": label})


def _label_check(config: Config, schema: schema_pb2.Schema) -> LabelCheck | None:
    """Returns the check of a label; None if the data gate finds what is no class."""
    name, classes = config.label.feature, config.label.classes
    (feature,) = (x for x in schema.feature if x.name == name)
    if not classes or {*classes} == {*(class_values(schema, name) or ())}:
        return None
    is_one_hot = config.label.task == "classification"
    if is_per_class(feature):
        return LabelCheck(feature=name, values=(0, 1), is_one_hot=is_one_hot)
    return LabelCheck(feature=name, values=classes)


def source_of(config: Config, split: str | None = None) -> Ingestion:
    """Returns what selects the files of an ingestion, and checks of their images."""
    data, limits = config.data, config.examples.images
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
    found = Ingestion(
        base=config.data_uri,
        patterns=data.patterns,
        hash_splits=data.hash_splits,
        images=tuple(images),
        pixels=tuple(
            PixelsCheck(feature=name, size=spec.size, dtype=spec.dtype)
            for name, spec in (config.features or {}).items()
            if isinstance(spec, RawPixels)
        ),
        max_record_bytes=config.examples.max_record_bytes,
        window=config.examples.window,
        complete_when=config.examples.complete_when,
        where=config.examples.where,
        expect=tuple(x.rule for x in config.validate_data.expect),
    )
    return _of_requests(config, found) if split == SERVING else found


def _of_requests(config: Config, data: Ingestion) -> Ingestion:
    """Returns what selects serving requests, given what selects the data."""
    serving = config.data.serving
    change: dict[str, Any] = {"patterns": {SERVING: serving}}
    if isinstance(serving, RequestLogs):
        change = {"patterns": {SERVING: serving.logs}, "are_logs": True}
    elif serving == REQUESTS:
        change = {
            "base": str(locate(config.root, config.name).requests),
            "patterns": {SERVING: _REQUEST_FILES},
            "are_logs": True,
            "window": _REQUEST_DAYS,
            "complete_when": CompleteWhen(),
        }
    return data.model_copy(update={"hash_splits": None, "where": None, **change})


def of_statistics_gen(context: GraphContext) -> Arguments:
    """Options of the statistics, by the schema."""
    return {"stats_options": statistics_options(load(context.config.schema_path))}


def statistics_options(schema: schema_pb2.Schema) -> StatsOptions:
    """Returns TFDV's options for the statistics of data with a schema.

    With 250 quantiles a bar of a histogram is half a point off. In a record they take
    40 kB per feature and split, so wide data has fewer of them. TFDV counts the values
    of integers that its schema calls categorical.
    """
    from tensorflow_data_validation import StatsOptions

    quantiles = max(10, min(250, 10_000 // max(len(schema.feature), 1)))
    counted = [x for x in schema.feature if is_counted(x)]
    return StatsOptions(
        schema=schema_pb2.Schema(feature=counted) if counted else None,
        num_quantiles_histogram_buckets=quantiles,
        num_values_histogram_buckets=quantiles,
    )


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
        sliced=tuple(sorted({x for names in config.evaluate.slices for x in names})),
        # The first model has served nobody yet.
        min_requests=0 if config.data.serving == REQUESTS else 1,
    )
    return {
        "settings": settings,
        "baseline_store": context.locations.baseline_store,
        "override": context.accept_data,
    }


def of_retrain_gate(context: GraphContext) -> Arguments:
    """The reasons to train, and where the served model and its data are."""
    recorded = locate(context.config.root, context.config.name).requests
    return {
        "settings": context.config.retrain,
        "classes": tuple(context.config.feature_set.label.class_names),
        "serving_dir": context.locations.serving_dir,
        "baseline_store": context.locations.baseline_store,
        "sensitive": context.config.sensitive,
        **({"recorded": str(recorded)} if _compares_predictions(context) else {}),
    }


def _compares_predictions(context: GraphContext) -> bool:
    """Whether a drift of predictions of recorded requests is a reason to train."""
    retrain, data = context.config.retrain, context.config.data
    is_reason = retrain is not None and retrain.request_drift_above is not None
    is_here = not (context.locations.is_service or context.config.private)
    return is_reason and is_here and data.serving == REQUESTS


def of_newest_ingestion(context: GraphContext) -> Arguments:
    """The settings of an ingestion of the newest span alone."""
    return {"settings": ingestion_of(context.config).model_copy(update={"window": 1})}


def of_served_model(context: GraphContext) -> Arguments:
    """The strategy that finds the served model; in a service the model store."""
    if context.locations.is_service:
        return of_baseline(context)
    return _trained_model({"served_in": context.locations.serving_dir})


def _trained_model(config: Any) -> Arguments:
    from tfx.types import Channel, standard_artifacts

    from components.baseline_model.component import TrainedModel

    model = Channel(type=standard_artifacts.Model)
    return {"strategy_class": TrainedModel, "config": config, "model": model}


def of_transform(context: GraphContext) -> Arguments:
    """The preprocessing function; transformed examples only for a custom node.

    The training applies the preprocessing to raw examples as it reads them.
    """
    from tfx.proto import transform_pb2

    config = context.config
    read = [x for node in config.nodes.values() for x in node.inputs.values()]
    return {
        "preprocessing_fn": config.preprocessing_path.replace(":", "."),
        # The test split is evaluated from raw examples, as a client sends them.
        "splits_config": transform_pb2.SplitsConfig(
            analyze=["train"], transform=["train", "eval"]
        ),
        "disable_statistics": True,
        "materialize": "Transform.transformed_examples" in read,
        "custom_config": {
            "feature_set": config.feature_set.model_dump(exclude=_DECISION)
        },
    }


def of_trainer(context: GraphContext) -> Arguments:
    """The training function with its model and settings."""
    from tfx.proto import trainer_pb2

    config = context.config
    return {
        "run_fn": RUN_FN.replace(":", "."),
        "train_args": trainer_pb2.TrainArgs(splits=["train"]),
        "eval_args": trainer_pb2.EvalArgs(splits=["eval"]),
        "custom_config": {
            **_built_from(context),
            "train": config.train.model_dump(),
            "warm_start_path": context.stored(config.warm_start_path, "models"),
            "checkpoints": context.locations.checkpoints,
        },
    }


def of_tuner(context: GraphContext) -> Arguments:
    """The search function with what a training is given, and the search space.

    What the config has at a tuned key makes no difference: a search whose values were
    written there is not repeated.
    """
    tune, arguments = context.config.tune, of_trainer(context)
    assert tune is not None
    given, fixed = arguments["custom_config"], first_values(tune)
    train, params = with_values(context.config.train, given["model_params"], fixed)
    given |= {"train": train.model_dump(), "model_params": params}
    given["feature_set"] = context.config.feature_set.model_dump(exclude=_DECISION)
    given["tune"] = tune.model_dump()
    del arguments["run_fn"]
    return {**arguments, "tuner_fn": TUNER_FN.replace(":", ".")}


def _built_from(context: GraphContext) -> Arguments:
    """What a model is built from."""
    config = context.config
    model_params = dict(config.model_params)
    if weights := context.stored(config.weights_file, "weights"):
        model_params["weights"] = weights
    return {
        "feature_set": config.feature_set.model_dump(),
        "own_preprocessing": config.preprocessing is not None,
        "model": config.model_path,
        "model_params": model_params,
    }


def of_exports(context: GraphContext) -> Arguments:
    """The function that exports, with the model and the formats."""
    return {
        "export_fn": EXPORT_FN,
        "formats": context.config.export,
        "built_from": _built_from(context),
    }


def of_serving_check(context: GraphContext) -> Arguments:
    """The settings, which features a client does not send, and recorded requests."""
    config = context.config
    weight = config.train.sample_weight
    hidden: tuple[str, ...] = (config.label.feature,)
    if weight is not None and weight not in config.feature_set.features:
        hidden += (weight,)
    assert config.serving_check is not None
    settings = ServingSettings(
        **config.serving_check.model_dump(),
        split=context.judged_split,
        hidden=hidden,
        sensitive=tuple(sorted(config.sensitive)),
        is_private=config.private or bool(config.sensitive),
        keeps_predictions=_compares_predictions(context),
    )
    recorded = locate(config.root, config.name).requests
    if context.locations.is_service or config.private or not recorded.is_dir():
        return {"settings": settings}
    # After a push or a rollback the check is made again.
    newest = store_at(context.locations.serving_dir).newest()
    compared = {"requests": str(recorded), "served": newest.uri} if newest else {}
    return {"settings": settings, **compared}


def of_warm_start_resolver(context: GraphContext) -> Arguments:
    """The strategy that finds the model whose weights the training starts from.

    Raises:
      ConfigError: a cloud service cannot find it: it does not run our strategies.
    """
    from tfx.dsl.input_resolution.strategies import latest_artifact_strategy

    source = context.config.train.warm_start
    is_service = context.locations.is_service
    if source == "latest_blessed":
        return _blessed_model(context)
    if source == "served" and is_service:
        what = "a cloud service cannot look up the served model: take latest_blessed, "
        raise ConfigError(f"{what}latest or null", where="train.warm_start")
    if source == "served":
        return of_served_model(context)
    arguments = _trained_model(None)
    if is_service:
        arguments["strategy_class"] = latest_artifact_strategy.LatestArtifactStrategy
    return arguments


def of_baseline(context: GraphContext) -> Arguments:
    """The strategy that finds the baseline; in a service the model store with it."""
    from components.model_verdict.settings import SERVED_MODELS

    changes = [x.change for x in context.config.evaluate.thresholds if x.change]
    count = SERVED_MODELS if any(x.over == "best" for x in changes) else 1
    if context.locations.is_service:
        of_store = {"serving_dir": context.locations.serving_dir, "baseline": ""}
        return {**of_store, "count": count}
    return _blessed_model(context) | {"config": {"count": count}}


def _blessed_model(context: GraphContext) -> Arguments:
    """The strategy of a resolver of the latest blessed model.

    Cloud services support only TFX's own, which takes a retired or missing model too.
    """
    from tfx.dsl.input_resolution.strategies import latest_blessed_model_strategy
    from tfx.types import Channel, standard_artifacts

    from components.baseline_model.component import LatestUsableBlessedModel

    of_tfx = latest_blessed_model_strategy.LatestBlessedModelStrategy
    is_service = context.locations.is_service
    return {
        "strategy_class": of_tfx if is_service else LatestUsableBlessedModel,
        "model": Channel(type=standard_artifacts.Model),
        "model_blessing": Channel(type=standard_artifacts.ModelBlessing),
    }


def of_evaluator(context: GraphContext) -> Arguments:
    """Metrics, slices and split of the evaluation."""
    config = context.config
    return {
        "example_splits": [context.judged_split],
        "eval_config": eval_config(
            config.evaluate, config.label, config.train.sample_weight
        ),
    }


def of_model_verdict(context: GraphContext) -> Arguments:
    """The thresholds of the model gate, and whether the model may be blessed."""
    settings = ModelVerdictSettings(
        thresholds=context.config.evaluate.thresholds,
        classes=tuple(context.config.feature_set.label.class_names),
        split=context.judged_split,
    )
    return {"settings": settings, "trial": 1 if context.trial else None}


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
