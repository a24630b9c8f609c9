"""Validates keys of ``train`` against the schema, the features and the file system."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import Image
from pipeline.config.problems import Problems
from pipeline.config.train import TRAINED_BEFORE
from schemas import loader
from sluice.config_section import Classes
from sluice.errors import did_you_mean


def check_weights(
    config: Config, schema: schema_pb2.Schema, classes: Classes, problems: Problems
) -> None:
    """Checks ``class_weights`` and ``sample_weight``.

    There are no ``classes`` if those of the label are wrong.
    """
    given, known = config.train.class_weights, [str(value) for value in classes]
    if isinstance(given, dict) and known:
        for key in map(str, given):
            if key not in known:
                of_class = ("train", "class_weights", key)
                problems.unknown(of_class, f"there is no class {key!r}", key, known)
        if {*map(str, given)} >= {*known} and not any(given.values()):
            what = "no class has a weight above 0, so nothing is learned"
            problems.add(("train", "class_weights"), what)
    name, path = config.train.sample_weight, ("train", "sample_weight")
    features = {feature.name: feature for feature in schema.feature}
    if name is None:
        return
    if name == config.label.feature:
        problems.add(path, f"{name!r} is the label")
    elif name not in features:
        problems.unknown_feature(path, name, features)
    elif features[name].type not in (schema_pb2.FLOAT, schema_pb2.INT):
        kind = schema_pb2.FeatureType.Name(features[name].type)
        problems.add(path, f"the sample weight {name!r} is no number, but {kind}")
    elif not (
        features[name].HasField("shape")
        and loader.has_one_value(features[name])
        and features[name].presence.min_fraction == 1
    ):
        problems.add(
            path,
            f"the sample weight {name!r} may be missing or have several values",
            expected="shape { dim { size: 1 } } with presence { min_fraction: 1 }",
        )


def check_augment(config: Config, problems: Problems) -> None:
    """Checks that there are images to augment in a config with features filled in."""
    augment, path = config.train.input.augment, ("train", "input", "augment")
    features = (config.features or {}).values()
    images = [spec for spec in features if isinstance(spec, Image)]
    if any(augment.model_dump().values()) and not images:
        problems.add(path, "there is no image to augment: no feature is of that kind")
    elif augment.saturation and all(spec.channels < 3 for spec in images):
        problems.add((*path, "saturation"), "gray images have no saturation")


def check_warm_start(config: Config, problems: Problems) -> None:
    """Checks that a model is at the path of ``warm_start``, if it is one."""
    path = config.warm_start_path
    if path is None or (path / "saved_model.pb").is_file():
        return
    if not (path.suffix == ".h5" and path.is_file()):
        given = config.train.warm_start
        problems.add(
            ("train", "warm_start"),
            f"there is no model {given!r}: no SavedModel or .h5 file at {path}",
            expected=f"{', '.join(TRAINED_BEFORE)}, or a path",
            hint=did_you_mean(given, TRAINED_BEFORE),
        )
