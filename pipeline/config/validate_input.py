"""Validates the weights and augmentation of training examples."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import Image
from pipeline.config.problems import Problems
from schemas import loader
from sluice.config_section import Classes


def check_weights(
    config: Config, schema: schema_pb2.Schema, classes: Classes, problems: Problems
) -> None:
    """Checks ``class_weights`` and ``sample_weight``.

    There are no ``classes`` if those of the label are wrong.
    """
    given = config.train.class_weights
    known = [str(value) for value in classes]
    if isinstance(given, dict) and known:
        for key in map(str, given):
            if key not in known:
                of_class = ("train", "class_weights", key)
                problems.unknown(of_class, f"there is no class {key!r}", key, known)
        if {*map(str, given)} >= {*known} and not any(given.values()):
            problems.add(
                ("train", "class_weights"),
                "no class has a weight, so nothing is learned",
                expected="a weight above 0, of one class at least",
            )
    name, path = config.train.sample_weight, ("train", "sample_weight")
    features = {feature.name: feature for feature in schema.feature}
    if name is None:
        return
    if name == config.label.feature:
        problems.add(path, f"{name!r} is the label", expected="another feature")
    elif name not in features:
        problems.unknown_feature(path, name, features)
    elif features[name].type not in (schema_pb2.FLOAT, schema_pb2.INT):
        problems.add(
            path,
            f"the sample weight {name!r} is not a number",
            expected="a FLOAT or INT feature",
            actual=f"{schema_pb2.FeatureType.Name(features[name].type)} in the schema",
        )
    elif not (
        features[name].HasField("shape")
        and loader.has_one_value(features[name])
        and features[name].presence.min_fraction == 1
    ):
        problems.add(
            path,
            f"the sample weight {name!r} may be missing or have several values",
            expected="shape { dim { size: 1 } } with presence { min_fraction: 1 }",
            hint="correct the schema",
        )


def check_augment(config: Config, problems: Problems) -> None:
    """Checks that there are images to augment in a config with features filled in."""
    augment, path = config.train.input.augment, ("train", "input", "augment")
    features = (config.features or {}).values()
    images = [spec for spec in features if isinstance(spec, Image)]
    if any(augment.model_dump().values()) and not images:
        problems.add(
            path, "there is no image to augment", expected="a feature of kind image"
        )
    elif augment.saturation and all(spec.channels < 3 for spec in images):
        problems.add(
            (*path, "saturation"),
            "gray images have no saturation",
            expected="an image with 3 channels, or no saturation",
        )
