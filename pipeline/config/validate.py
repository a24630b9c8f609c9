"""Validates a config against its schema and the project's files.

Finds what would make a run fail later and can be known without data. TensorFlow is not
imported and user code is not run: ``pipeline.graph.check_objects`` does both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.features import Image
from pipeline.config.model_params import ApplicationParams, CnnParams, DenseParams
from pipeline.config.problems import Problems
from pipeline.config.resolve_features import (
    is_left_to_preprocessing,
    resolve_classes,
    resolve_features,
)
from pipeline.config.validate_data import check_data
from pipeline.config.validate_evaluate import check_evaluate
from pipeline.config.validate_secrets import check_secrets
from pipeline.config.validate_train import (
    check_augment,
    check_warm_start,
    check_weights,
)
from schemas import loader
from sluice.config_section import Classes, Section
from sluice.errors import ConfigError, did_you_mean
from sluice.project import check_names, find_user_code
from sluice.storage.storage import is_remote

_KINDS_OF_TYPE = {
    schema_pb2.FLOAT: ("numeric", "bucketized"),
    schema_pb2.INT: ("numeric", "bucketized", "vocabulary", "hashed"),
    schema_pb2.BYTES: ("vocabulary", "hashed", "image"),
}
_ONE_VALUE = (
    "in the schema, give it shape { dim { size: 1 } } and presence { min_fraction: 1 }"
    ", or, if it may be missing, value_count { min: 1 max: 1 } and no shape; or leave "
    "it out of 'features': a preprocessing_fn of your own still gets it"
)
# Height and width that models of ``tf.keras.applications`` need at least; others: 32.
SMALLEST_IMAGE = {"InceptionResNetV2": 75, "InceptionV3": 75, "Xception": 71}

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
    if not config.schema_path.is_file():
        what = f"there is no schema {config.schema_path}"
        problems.add(("schema",), what, hint=f"paths are relative to {config.root}")
        problems.raise_if_any()
    schema = loader.load(config.schema_path)
    classes = _check_label(config, schema, problems)
    _check_features(config, schema, problems)
    _check_code(config, problems)
    _check_serving_dir(config, problems)
    check_secrets(config, problems)
    check_data(config, schema, problems)
    check_weights(config, schema, classes, problems)
    check_warm_start(config, problems)
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
    _check_model(resolved, problems)
    check_augment(resolved, problems)
    problems.raise_if_any()
    if not config.evaluate.thresholds:
        what = "there are no thresholds, so every trained model is pushed"
        problems.warn(("evaluate", "thresholds"), what)
    if "test" not in config.data.split_names:
        what = "there is no test split, so the model gate uses eval, as training does"
        problems.warn(("data", "splits" if config.data.splits else "hash_splits"), what)
    return ValidConfig(resolved, schema, tuple(problems.warnings))


def _check_label(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> Classes:
    """Returns the classes; empty if they are wrong, so that metrics are not checked."""
    name, path = config.label.feature, ("label", "feature")
    features = {feature.name: feature for feature in schema.feature}
    if name not in features:
        problems.unknown_feature(path, name, features)
        return ()
    kind = features[name].type
    if kind not in (schema_pb2.INT, schema_pb2.BYTES):
        type_name = schema_pb2.FeatureType.Name(kind)
        what = f"the label {name!r} must be categorical: INT or BYTES, not {type_name}"
        problems.add(path, what)
        return ()
    if problem := _value_problem(features[name], optional=False):
        problems.add(path, f"the label {name!r} {problem}", hint=_ONE_VALUE)
    values = loader.class_values(schema, name)
    classes = resolve_classes(config.label, schema) or ()
    wanted = int if kind == schema_pb2.INT else str
    domain = "a categorical int_domain" if wanted is int else "a string_domain"
    if len(classes) < 2:
        what = f"the classes of {name!r} are unknown"
        hint = f"write 'classes: [...]', or give the feature {domain} in the schema"
    elif not isinstance(classes[0], wanted):
        what = f"the classes do not have the type of {name!r} in the schema"
        hint = f"write {'whole numbers' if wanted is int else 'strings'}"
    elif values is None:
        what = f"without {domain}, labels outside the classes would go unnoticed"
        hint = "add one to the schema, with these classes: " + _listed(classes)
    elif set(values) != set(classes):
        what = "the classes are not those of the schema's domain: " + _listed(values)
        hint = "change the one that is wrong, or leave 'classes' out"
    else:
        return classes
    problems.add(("label", "classes"), what, hint=hint)
    return ()


def _check_features(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> None:
    features = {feature.name: feature for feature in schema.feature}
    listed = config.features
    for name in features if listed is None else listed:
        path = ("features", name)
        if name == config.label.feature:
            if listed is not None:
                problems.add(
                    path, f"{name!r} is the label, which must not be a feature"
                )
            continue
        if name not in features:
            problems.unknown_feature(path, name, features)
            continue
        spec = None if listed is None else listed[name]
        if is_left_to_preprocessing(features[name], config):
            problem = _shape_problem(features[name])
        else:
            is_image = spec is not None and spec.kind == "image"
            problem = _value_problem(features[name], optional=not is_image)
        if problem:
            problems.add(path, f"the feature {name!r} {problem}", hint=_ONE_VALUE)
        kinds = _KINDS_OF_TYPE.get(features[name].type, ())
        if spec is not None and spec.kind not in kinds:
            type_name = schema_pb2.FeatureType.Name(features[name].type)
            what = f"{spec.kind!r} is not for {name!r}, which is {type_name}"
            hint = "one of " + ", ".join(kinds) if kinds else None
            problems.add((*path, "kind"), what, expected=hint)


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


def _check_model(config: Config, problems: Problems) -> None:
    """Adds the problems of ``model`` and ``model_params``; features are resolved."""
    if config.model not in BUNDLED_MODELS and not config.is_application:
        return
    features = config.features or {}
    images = [spec for spec in features.values() if isinstance(spec, Image)]
    if config.model == "wide_deep" and images:
        problems.add(("model",), "the model 'wide_deep' takes no images")
    if config.model == "cnn" or config.is_application:
        if len(images) != 1 or len(features) != 1:
            problems.add(
                ("model",),
                f"the model {config.model!r} takes exactly one image and no other "
                "feature: list only the image in 'features'",
                hint=did_you_mean(config.model, BUNDLED_MODELS)
                if config.is_application
                else None,
            )
        elif config.is_application:
            _check_image(config, images[0], problems)
    section = _PARAMS.get(config.model, ApplicationParams)
    try:
        section.model_validate(config.model_params)
    except ValidationError as error:
        problems.add_refused(error, config.model_params, section, ("model_params",))


def _check_image(config: Config, image: Image, problems: Problems) -> None:
    (name,) = config.features or {}
    smallest = SMALLEST_IMAGE.get(config.model, 32)
    if min(image.height, image.width) < smallest:
        problems.add(
            ("features", name),
            f"the image of {image.height} x {image.width} is too small for "
            f"{config.model}, which takes at least {smallest} x {smallest}: write a "
            "larger size, to which images are resized",
        )
    if image.channels == 4:
        problems.add(
            ("features", name, "channels"),
            f"{config.model} takes no alpha channel: 3 (RGB), or 1 (gray)",
        )


def _check_code(config: Config, problems: Problems) -> None:
    for key, reference in (
        ("preprocessing", config.preprocessing),
        ("model", config.model if {*":."} & {*config.model} else None),
    ):
        if reference is not None:
            try:
                find_user_code(config.root, reference)
            except ConfigError as error:
                problems.add_error((key,), error)


def _check_serving_dir(config: Config, problems: Problems) -> None:
    """Adds a problem for a push among files of other kinds, which gc would delete."""
    given = config.serving_dir
    if given is None or is_remote(given):
        return
    target = Path(given)
    taken: Collection[Path] = (config.root, config.root / "workspace", config.data_dir)
    if target in taken or (
        not is_remote(config.data.dir) and (target.is_relative_to(config.data_dir))
    ):
        what = f"{target} holds other files: versions need a folder of their own"
        problems.add(("push", "serving_dir"), what)


def _listed(values: Sequence[object]) -> str:
    listed = [str(value) for value in values]
    return ", ".join(listed[:12]) + (" ..." if len(listed) > 12 else "")
