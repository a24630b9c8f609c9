"""Validates a config against itself, the schema, the metrics and the user's code.

Finds everything that would make a run fail later and can be known without data.
TensorFlow is not imported and user code is not run: ``pipeline.graph.check_objects``
does both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.problems import Problems
from pipeline.config.resolve_features import (
    is_left_to_preprocessing,
    resolve_classes,
    resolve_features,
)
from pipeline.config.validate_data import check_data, warn_of_data
from pipeline.config.validate_evaluate import check_evaluate
from pipeline.config.validate_input import check_augment, check_weights
from pipeline.config.validate_model import check_model
from pipeline.config.validate_secrets import check_secrets
from pipeline.config.validate_train import (
    check_fine_tune,
    check_strategy,
    check_warm_start,
)
from schemas import loader
from sluice.config_section import Classes
from sluice.errors import ConfigError
from sluice.project import check_names, find_user_code

_VECTOR = {
    "expected": "presence { min_fraction: 1 } beside the shape, or value_count and no "
    "shape",
    "hint": "correct the schema",
}
_KINDS_OF_TYPE = {
    schema_pb2.FLOAT: ("numeric", "bucketized"),
    schema_pb2.INT: ("numeric", "bucketized", "vocabulary", "hashed"),
    schema_pb2.BYTES: ("vocabulary", "hashed", "image"),
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
    schema = _load_schema(config, problems)
    classes = _check_label(config, schema, problems)
    _check_features(config, schema, problems)
    _check_code(config, problems)
    check_secrets(config, problems)
    check_data(config, schema, problems)
    check_strategy(config.train, problems)
    check_weights(config, schema, classes, problems)
    check_warm_start(config.train, config.warm_start_path, problems)
    check_fine_tune(config.train, problems)
    check_evaluate(config.evaluate, schema, len(classes), problems)
    problems.raise_if_any()
    features = resolve_features(config, schema)
    resolved = config.model_copy(
        update={
            "label": config.label.model_copy(update={"classes": classes}),
            # With the user's own preprocessing there may be no feature with a kind.
            "features": features or None,
        }
    )
    check_model(resolved, problems)
    check_augment(resolved, problems)
    problems.raise_if_any()
    if not config.evaluate.thresholds:
        problems.warn(
            ("evaluate", "thresholds"),
            "there are no thresholds, so every trained model is pushed",
        )
    warn_of_data(config, problems)
    return ValidConfig(resolved, schema, tuple(problems.warnings))


def _load_schema(config: Config, problems: Problems) -> schema_pb2.Schema:
    if not config.schema_path.is_file():
        problems.add(
            ("schema",),
            "there is no schema",
            expected=f"a reviewed schema, {config.schema_path}",
            hint="write 'schema: PATH', relative to the project root"
            if config.schema_file is None
            else f"check the path; it is relative to {config.root}",
        )
        problems.raise_if_any()
    return loader.load(config.schema_path)


def _check_label(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> Classes:
    """Returns the classes; empty if they are wrong, so that metrics are not checked."""
    label, path = config.label, ("label", "feature")
    features = {feature.name: feature for feature in schema.feature}
    if label.feature not in features:
        problems.unknown_feature(path, label.feature, features)
        return ()
    kind = features[label.feature].type
    if kind not in (schema_pb2.INT, schema_pb2.BYTES):
        problems.add(
            path,
            f"the label {label.feature!r} must be categorical",
            expected="an INT or BYTES feature",
            actual=f"{schema_pb2.FeatureType.Name(kind)} in the schema",
        )
        return ()
    if problem := _value_problem(features[label.feature], optional=False):
        problems.add(
            path, f"the label {label.feature!r} {problem}", **_one_value(False)
        )
    values = loader.class_values(schema, label.feature)
    classes = resolve_classes(label, schema) or ()
    path = ("label", "classes")
    wanted = int if kind == schema_pb2.INT else str
    if len(classes) < 2:
        problems.add(
            path,
            f"the classes of {label.feature!r} are unknown",
            expected="at least 2, here or in the schema's domain",
            actual=_listed(classes) or None,
            hint="write 'classes: [...]', or give the feature a categorical "
            "int_domain or a string_domain",
        )
    elif not isinstance(classes[0], wanted):
        problems.add(
            path,
            "the classes do not have the type of the label in the schema",
            expected="whole numbers" if wanted is int else "strings",
            actual=repr(classes[0]),
        )
    elif values is None:
        problems.add(
            path,
            f"the schema has no domain for {label.feature!r}, so labels outside the "
            "classes would go unnoticed",
            expected="a categorical int_domain or a string_domain in the schema",
            hint="add one with these classes: " + _listed(classes),
        )
    elif set(values) != set(classes):
        problems.add(
            path,
            "the classes are not those of the schema's domain",
            expected=_listed(values),
            actual=_listed(classes),
            hint="change the one that is wrong, or leave 'classes' out",
        )
    else:
        return classes
    return ()


def _check_features(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> None:
    features = {feature.name: feature for feature in schema.feature}
    own = config.preprocessing is not None
    used = config.features if config.features is not None else features
    for name in used:
        path = ("features", name)
        if name == config.label.feature:
            if config.features is not None:
                problems.add(
                    path,
                    f"{name!r} is the label",
                    hint="the label must not be a feature",
                )
            continue
        if name not in features:
            problems.unknown_feature(path, name, features)
            continue
        image = config.features is not None and config.features[name].kind == "image"
        if is_left_to_preprocessing(features[name], config):
            if problem := _shape_problem(features[name]):
                problems.add(path, f"the feature {name!r} {problem}", **_VECTOR)
            continue
        if problem := _value_problem(features[name], optional=not image):
            problems.add(path, f"the feature {name!r} {problem}", **_one_value(own))
        kinds = _KINDS_OF_TYPE.get(features[name].type, ())
        if config.features is not None and config.features[name].kind not in kinds:
            problems.add(
                (*path, "kind"),
                f"the kind {config.features[name].kind!r} does not fit {name!r}",
                expected="one of " + ", ".join(kinds),
                actual=schema_pb2.FeatureType.Name(features[name].type)
                + " in the schema",
            )


def _one_value(own_preprocessing: bool) -> dict[str, str]:
    leave_out = "leave the feature out of 'features'"
    if own_preprocessing:
        leave_out += "; your preprocessing_fn still gets it"
    return {
        "expected": "shape { dim { size: 1 } } with presence { min_fraction: 1 }, or "
        "for a feature that may be missing value_count { min: 1 max: 1 } and no shape",
        "hint": f"correct the schema, or {leave_out}",
    }


def _value_problem(feature: schema_pb2.Feature, *, optional: bool) -> str | None:
    """Returns the problem with a feature's shape or presence, None if there is none."""
    has_shape = feature.HasField("shape")
    if not (has_shape or optional):
        return "may be missing from a record"
    if loader.has_one_value(feature):
        return _shape_problem(feature)
    if has_shape:
        return "does not have exactly one value"
    return "may have more than one value in a record"


def _shape_problem(feature: schema_pb2.Feature) -> str | None:
    if feature.HasField("shape") and feature.presence.min_fraction < 1:
        return "has a shape and may be missing, which TFX cannot read"
    return None


def _check_code(config: Config, problems: Problems) -> None:
    if config.preprocessing is not None:
        _check_reference(config, "preprocessing", config.preprocessing, problems)
    if ":" in config.model or "." in config.model:
        _check_reference(config, "model", config.model, problems)


def _check_reference(
    config: Config, key: str, reference: str, problems: Problems
) -> None:
    try:
        find_user_code(config.root, reference)
    except ConfigError as error:
        problems.add_error((key,), error)


def _listed(values: Sequence[object]) -> str:
    listed = [str(value) for value in values]
    return ", ".join(listed[:12]) + (" ..." if len(listed) > 12 else "")
