"""Resolves features, kinds and classes from config and schema.

Without ``features`` in the config, every feature of the schema but the label and the
sample weight is used, with a kind derived from its type. The size of an image is never
derived.
"""

from __future__ import annotations

from typing import cast

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import (
    FeatureSet,
    FeatureSpec,
    Hashed,
    Label,
    Numeric,
    Vocabulary,
)
from schemas import loader
from sluice.config_section import Classes
from sluice.errors import ConfigError

LARGE_DOMAIN = 1000


def feature_set_of(config: Config, schema: schema_pb2.Schema) -> FeatureSet:
    """Returns the features and the label as the nodes take them.

    Raises:
      ConfigError: a feature or the classes cannot be derived from the schema.
    """
    classes = resolve_classes(config.label, schema)
    return FeatureSet(
        features=resolve_features(config, schema),
        label=config.label.model_copy(update={"classes": classes}),
        sample_weight=config.train.sample_weight,
    )


def resolve_classes(label: Label, schema: schema_pb2.Schema) -> Classes | None:
    """Returns the config's classes or else the schema's; None if neither has them."""
    if label.classes is not None:
        return label.classes
    values = loader.class_values(schema, label.feature)
    return None if values is None else cast(Classes, tuple(values))


def resolve_features(
    config: Config, schema: schema_pb2.Schema
) -> dict[str, FeatureSpec]:
    """Returns each feature's kind: the config's, or else derived from the schema.

    FLOAT becomes numeric, and so does INT unless its domain is categorical. Categorical
    INT, and BYTES, becomes a vocabulary of the size of its domain, or hashed without a
    domain or with more than 1,000 values. With the user's own preprocessing no kind is
    derived for vectors.

    Raises:
      ConfigError: no kind can be derived for a feature, such as an image; the config
        must then list the features.
    """
    if config.features is not None:
        return dict(config.features)
    specs: dict[str, FeatureSpec] = {}
    unknown = {}
    for feature in schema.feature:
        if feature.name in (config.label.feature, config.train.sample_weight):
            continue
        if is_left_to_preprocessing(feature, config):
            continue
        spec = _derived(feature, schema)
        if isinstance(spec, str):
            unknown[feature.name] = spec
        else:
            specs[feature.name] = spec
    if unknown:
        raise ConfigError(
            "no kind can be derived for some features of the schema",
            where=config.origin.location(("features",)),
            examples=[f"{name!r} {why}" for name, why in unknown.items()],
            hint="list the features to use, such as "
            f"features: {{{next(iter(unknown))}: "
            "{kind: image, height: 28, width: 28, channels: 1}}",
        )
    return specs


def is_left_to_preprocessing(feature: schema_pb2.Feature, config: Config) -> bool:
    """Whether a feature is a vector, which only the user's preprocessing handles."""
    own = config.preprocessing is not None and config.features is None
    plain = feature.type in (schema_pb2.FLOAT, schema_pb2.INT, schema_pb2.BYTES)
    return own and plain and not loader.has_one_value(feature)


def _derived(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> FeatureSpec | str:
    """Returns the kind derived from a feature's type, or why there is none."""
    values = loader.class_values(schema, feature.name)
    match feature.type:
        case schema_pb2.FLOAT:
            return Numeric()
        case schema_pb2.INT if not feature.int_domain.is_categorical:
            return Numeric()
        case schema_pb2.BYTES if feature.HasField("image_domain"):
            return "is an image, whose height, width and channels must be given"
        case schema_pb2.INT | schema_pb2.BYTES:
            if values is not None and len(values) <= LARGE_DOMAIN:
                return Vocabulary(top_k=len(values))
            return Hashed()
    return f"has the type {schema_pb2.FeatureType.Name(feature.type)}"
