"""Validates a config against its schema and the project's files.

Finds what would make a run fail later and can be known without data. TensorFlow is not
imported and user code is not run: ``check_objects`` does both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from tensorflow_metadata.proto.v0 import schema_pb2

from components.serving_check.settings import PREDICTION
from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.evaluate import Metric
from pipeline.config.features import Image, Passthrough, RawPixels
from pipeline.config.label import Task, transformed_name
from pipeline.config.model_params import ApplicationParams, CnnParams, DenseParams
from pipeline.config.notify import check_urls
from pipeline.config.problems import KeyPath, Problems, shown
from pipeline.config.resolve_features import (
    check_one_value,
    find_feature,
    resolve_features,
)
from pipeline.config.resolve_label import resolve_label
from pipeline.config.train import TRAINED_BEFORE
from pipeline.config.tune import candidates, with_values
from schemas import loader
from sluice.config_section import Classes, Section
from sluice.errors import ConfigError, did_you_mean
from sluice.metrics import ONE_CLASS_ONLY, TWO_CLASSES_ONLY
from sluice.project import check_names, find_user_code
from sluice.secrets import references
from sluice.storage.storage import is_remote

# With these such a metric is of one class, or of the best ones.
_CHOSEN = {"class_id", "top_k"}

_PARAMS: dict[str, type[Section]] = {
    "dense": DenseParams,
    "wide_deep": DenseParams,
    "cnn": CnnParams,
}


@dataclass(frozen=True)
class ValidConfig:
    """A validated config, with classes and features filled in.

    Warnings are about values that are valid but probably not intended.
    """

    config: Config
    schema: schema_pb2.Schema
    warnings: tuple[str, ...]


def validate_config(config: Config) -> ValidConfig:
    """Returns the config completed from its schema.

    Raises:
      ConfigError: lists every problem with file, line and key path.
    """
    check_names(config.root)
    problems = Problems(config.origin)
    if not os.path.isfile(config.schema_path):
        text = f"there is no schema {config.schema_path}"
        problems.add(("schema",), text, hint=f"paths are relative to {config.root}")
        problems.raise_if_any()
    schema = loader.load(config.schema_path)
    label = resolve_label(config, schema, problems)
    classes = label.classes or ()
    features = resolve_features(config, schema, problems)
    # With the user's own preprocessing there may be no feature with a kind.
    filled_in = {"label": label, "features": features or None}
    resolved = config.model_copy(update=filled_in)
    _check_files(config, problems)
    check_secrets(config, problems)
    check_urls(config.notify, problems)
    _check_data(config, schema, problems)
    _check_retrain(config, schema, problems)
    _check_weights(config, schema, classes, problems)
    _check_evaluate(config, schema, classes, problems)
    _check_model(resolved, problems)
    problems.raise_if_any()
    # What is wrong in the config itself would be named again with each value.
    _check_tune(config, problems)
    problems.raise_if_any()
    if not config.evaluate.thresholds:
        text = "there are no thresholds, so every trained model is pushed"
        problems.warn(("evaluate", "thresholds"), text)
    if "test" not in config.data.split_names:
        text = "there is no test split, so the model gate uses eval, as training does"
        problems.warn(("data", "splits" if config.data.splits else "hash_splits"), text)
    return ValidConfig(resolved, schema, tuple(problems.warnings))


def _check_files(config: Config, problems: Problems) -> None:
    """Adds problems of the user's code, of a warm start, and of where to push."""
    for key, reference in (
        ("preprocessing", config.preprocessing),
        ("model", config.model if config.has_own_model else None),
    ):
        if reference is not None:
            try:
                find_user_code(config.root, reference)
            except ConfigError as error:
                problems.add_error((key,), error)
    path, model = config.warm_start_path, config.train.warm_start
    if path and not os.path.isfile(
        path if path.suffix == ".h5" else path / "saved_model.pb"
    ):
        text = f"there is no model {model!r}: no SavedModel or .h5 file at {path}"
        hint = did_you_mean(model, TRAINED_BEFORE)
        problems.add(("train", "warm_start"), text, hint=hint)
    # gc deletes what else it finds there.
    if config.serving_dir and not is_remote(config.serving_dir):
        target = Path(config.serving_dir)
        folders = (config.data_dir, config.root / "workspace")
        if target == config.root or any(map(target.is_relative_to, folders)):
            text = f"{target} holds other files: versions need a folder of their own"
            problems.add(("push", "serving_dir"), text)


def check_secrets(
    config: Config, problems: Problems, *, in_notify: bool = False
) -> None:
    """Adds references to secrets that are not allowed, or to variables not set.

    Those that are not set in ``notify`` are warnings, unless ``in_notify``: a run does
    its work without them.
    """
    for path, text in _strings(config.model_dump(by_alias=True), ()):
        names = references(text)
        # Everything else is stored as it is used: paths and names in ML Metadata.
        is_node_s = path[0] == "nodes" and path[2] == "parameters"
        if names and not (path[0] in ("model_params", "notify") or is_node_s):
            problem = "this cannot refer to a secret (env:...): only values of "
            problems.add(
                path, problem + "model_params, nodes.*.parameters and notify can"
            )
            continue
        for name in names:
            if name and name in os.environ:
                continue
            problem = f"the environment variable {name or '(no name)'} is not set"
            if name and path[0] == "notify" and not in_notify:
                problems.warn(path, f"{problem}, so nothing is sent there")
            else:
                hint = "export it, or write $${env:...} for the text itself"
                problems.add(path, problem, hint=hint)


def require_secrets(config: Config, *, in_notify: bool = False) -> None:
    """Raises one ``ConfigError`` for all references that cannot be resolved now."""
    problems = Problems(config.origin)
    check_secrets(config, problems, in_notify=in_notify)
    problems.raise_if_any()


def _strings(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yields all strings among the values of a config, with their path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _strings(item, (*path, key))


def _check_data(config: Config, schema: schema_pb2.Schema, problems: Problems) -> None:
    """Adds problems of the features that data sections name."""
    by = config.data.hash_splits and config.data.hash_splits.by
    if by:
        path: KeyPath = ("data", "hash_splits", "by")
        feature = find_feature(path, by, schema, problems)
        if feature and feature.type not in (schema_pb2.INT, schema_pb2.BYTES):
            problems.add(path, f"records cannot be split by {by!r}, a FLOAT")
    conditions: dict[KeyPath, str | None] = {
        ("examples", "where"): config.examples.where,
        **{
            ("validate", "expect", index): item.rule
            for index, item in enumerate(config.validate_data.expect)
        },
    }
    for path, text in conditions.items():
        if text is not None and (why := _why_not(text, schema)):
            problems.add(path, f"{text!r} cannot be evaluated: {why}")
    for index, name in enumerate(config.sensitive):
        find_feature(("sensitive", index), name, schema, problems)
    for index, rule in enumerate(config.validate_data.rules):
        # A feature that is not in the schema is a `new_feature` anomaly.
        if rule.feature and rule.anomaly not in (None, "new_feature"):
            path = ("validate", "rules", index, "feature")
            find_feature(path, rule.feature, schema, problems)


def _check_retrain(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> None:
    """Adds problems of the features whose drift is a reason to train."""
    for key in ("drift_above", "request_drift_above"):
        limits = config.retrain and getattr(config.retrain, key)
        known = {PREDICTION} if key == "request_drift_above" else set()
        for name in {*limits} - known if isinstance(limits, dict) else ():
            find_feature(("retrain", key, name), name, schema, problems)


def _why_not(text: str, schema: schema_pb2.Schema) -> str | None:
    # DuckDB and Arrow, which take 0.1 s, only where they are needed.
    from components.tfrecord_gen.conditions import column_types, why_not

    types, lists = loader.list_types(schema), loader.list_features(schema)
    return why_not(text, column_types(types, lists))


def _check_weights(
    config: Config, schema: schema_pb2.Schema, classes: Classes, problems: Problems
) -> None:
    """Adds problems of ``class_weights`` and ``sample_weight``."""
    weights, known = config.train.class_weights, [str(value) for value in classes]
    if weights and config.label.task != "classification":
        text = f"a {config.label.task} has no class weights: set train.sample_weight"
        problems.add(("train", "class_weights"), text)
    for key in map(str, weights if isinstance(weights, dict) and known else ()):
        if key not in known:
            path: KeyPath = ("train", "class_weights", key)
            problems.unknown(path, f"there is no class {key!r}", key, known)
    name, path = config.train.sample_weight, ("train", "sample_weight")
    feature = name and find_feature(path, name, schema, problems)
    if name == config.label.feature:
        problems.add(path, f"{name!r} is the label")
    elif feature and feature.type not in (schema_pb2.FLOAT, schema_pb2.INT):
        problems.add(path, f"the sample weight {name!r} is no number")
    elif feature:
        check_one_value(path, feature, problems)


def _check_evaluate(
    config: Config, schema: schema_pb2.Schema, classes: Classes, problems: Problems
) -> None:
    """Adds problems of metrics, slices, and the values that thresholds name."""
    evaluate = config.evaluate
    raw = (*loader.feature_names(schema), *(config.features or ()))
    transformed = {transformed_name(name): name for name in raw}
    for index, metric in enumerate(evaluate.metrics):
        if classes or config.label.task == "regression":
            where: KeyPath = ("evaluate", "metrics", index)
            _check_classes_of_metric(
                metric, config.label.task, classes, where, problems
            )
    for index, names in enumerate(evaluate.slices):
        for position, name in enumerate(names):
            path: KeyPath = ("evaluate", "slices", index, position)
            feature = find_feature(path, name, schema, problems)
            if feature and feature.type == schema_pb2.FLOAT:
                text = f"{name!r} is FLOAT: each of its values becomes a slice"
                problems.warn(path, text)
            if name in transformed:
                text = f"TFMA would take {name!r} for the transformed "
                text += f"{transformed[name]!r}, which has the same name"
                problems.add(path, text, hint="rename it in the records and the schema")
    features = {feature.name: feature for feature in schema.feature}
    is_regression = config.label.task == "regression"
    for index, threshold in enumerate(evaluate.thresholds):
        if is_regression and threshold.min_examples_per_class is not None:
            path = ("evaluate", "thresholds", index, "min_examples_per_class")
            text = "a regression has no classes: name the large slices in 'slice'"
            problems.add(path, text)
        chosen = threshold.slice if isinstance(threshold.slice, dict) else {}
        for name in chosen.keys() & features:
            path = ("evaluate", "thresholds", index, "slice", name)
            value, known = chosen[name], loader.class_values(schema, name)
            is_text = features[name].type == schema_pb2.BYTES
            if isinstance(value, str) != is_text:
                wanted = "a string: quote it" if is_text else "a whole number"
                problems.add(path, f"{name!r} takes {wanted}")
            elif known and value not in known:
                text = f"{value!r} is not in the domain of {name!r}"
                problems.unknown(path, text, value, map(str, known))


def _check_classes_of_metric(
    metric: Metric, task: Task, classes: Classes, path: KeyPath, problems: Problems
) -> None:
    """Adds what is wrong if a metric is not for that many classes per example."""
    name, count = metric.class_name, len(classes)
    has_average = task == "multi_label" or count > 2
    class_id = metric.params.get("class_id", 0)
    is_of_two = metric.average or _CHOSEN & metric.params.keys()
    if metric.average and (not has_average or "class_id" in metric.params):
        text = "there is no average of one class"
        if not has_average:
            text = f"of a {task} with {count} classes there is no average over classes"
        problems.add((*path, "average"), text)
    elif has_average and not (isinstance(class_id, int) and 0 <= class_id < count):
        text = f"there is no class {class_id!r}: they are numbered from 0 to"
        problems.add((*path, "params", "class_id"), f"{text} {count - 1}")
    elif not has_average and _CHOSEN & metric.params.keys():
        text = f"a {task} has no classes"
        if task == "classification":
            text = f"of two classes {name} is of label.positive: for the other class "
            text += "take Specificity or NPV, or change label.positive"
        problems.add((*path, "params"), text)
    elif task == "multi_label" and name in ONE_CLASS_ONLY:
        text = f"{name} is not for several labels per example. "
        problems.add(path, f"{text}Use BinaryAccuracy, AUC, Precision or Recall")
    elif task == "classification" and count > 2 and name in TWO_CLASSES_ONLY:
        if not is_of_two:
            problems.add(
                path,
                f"{name} is for two classes: of {count}, TFMA pools "
                "one-against-the-rest predictions, most of them easy negatives. Use "
                "average: macro, SparseCategoricalAccuracy or "
                "SparseCategoricalCrossentropy",
            )


def _check_model(config: Config, problems: Problems) -> None:
    """Adds problems of the model, its parameters and images; features are resolved."""
    features = config.features or {}
    images = [x for x in features.values() if isinstance(x, Image | RawPixels)]
    augment, path = config.train.input.augment, ("train", "input", "augment")
    if any(augment.model_dump().values()) and not images:
        problems.add(path, "there is no image to augment: no feature is of that kind")
    elif augment.saturation and all(spec.channels < 3 for spec in images):
        problems.add((*path, "saturation"), "gray images have no saturation")
    if config.has_own_model:
        return
    for name, spec in features.items():
        if isinstance(spec, Passthrough):
            text = f"the model {config.model!r} takes no values as they are"
            own = "write a model of your own, or choose another kind"
            problems.add(("features", name), text, hint=own)
    if config.model == "wide_deep" and images:
        problems.add(("model",), "the model 'wide_deep' takes no images")
    takes_one_image = config.model == "cnn" or config.is_application
    if takes_one_image and (len(images) != 1 or len(features) != 1):
        text = f"the model {config.model!r} takes exactly one image and no other "
        hint = did_you_mean(config.model, BUNDLED_MODELS)
        hint = hint if config.is_application else None
        problems.add(("model",), f"{text}feature: list it in 'features'", hint=hint)
    section = _PARAMS.get(config.model, ApplicationParams)
    try:
        section.model_validate(config.model_params)
    except ValidationError as error:
        problems.add_refused(error, config.model_params, ("model_params",))


def _check_tune(config: Config, problems: Problems) -> None:
    """Adds what would be refused in the config itself."""
    section = _PARAMS.get(config.model, ApplicationParams)
    for path, values in candidates(config.tune) if config.tune else ():
        try:
            _, params = with_values(config.train, config.model_params, values)
            if not config.has_own_model:
                section.model_validate(params)
        except ValidationError as error:
            details = error.errors(include_url=False)[0]
            problems.add(path, details["msg"], actual=shown(*values.values()))
