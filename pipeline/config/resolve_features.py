"""Features: those of the config, checked, or else derived from the schema.

Without ``features`` in the config, every feature of the schema but the label and the
sample weight is used, with a kind derived from its type. The size of an image is never
derived.
"""

from __future__ import annotations

import math

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import (
    Cross,
    FeatureSpec,
    Hashed,
    MultiHot,
    Numeric,
    Passthrough,
    RawPixels,
    Vector,
    Vocabulary,
)
from pipeline.config.problems import KeyPath, Problems
from schemas import loader

LARGE_DOMAIN = 1000
_TYPES = (schema_pb2.FLOAT, schema_pb2.INT, schema_pb2.BYTES)

# A list of categories without a domain becomes so many columns.
CATEGORIES = 1000

_ONE_VALUE = (
    "in the schema, give it shape { dim { size: 1 } } and presence { min_fraction: 1 }"
    ", or, if it may be missing, value_count { min: 1 max: 1 } and no shape; or leave "
    "it out of 'features': a preprocessing_fn of your own still gets it"
)
_FIXED_NUMBER = (
    "in the schema, give it shape { dim { size: N } } and presence { min_fraction: 1 }"
)


def resolve_features(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> dict[str, FeatureSpec]:
    """Returns each feature's kind: the config's, or else derived from the schema.

    FLOAT becomes numeric, and so does INT unless its domain is categorical. Categorical
    INT, and BYTES, becomes a vocabulary of the size of its domain, or hashed without a
    domain or with more than 1,000 values. A list becomes a vector, or multi-hot if it
    is of categories; with a preprocessing of the user's own it is left to that.
    """
    listed = config.features
    specs: dict[str, FeatureSpec] = {}
    no_features = (config.label.feature, config.train.sample_weight)
    derived = [item.name for item in schema.feature if item.name not in no_features]
    for name in derived if listed is None else listed:
        path: KeyPath = ("features", name)
        own_spec = None if listed is None else listed[name]
        if isinstance(own_spec, Cross):
            _check_cross(path, own_spec, config, schema, problems)
            specs[name] = own_spec
            continue
        feature = find_feature(path, name, schema, problems)
        if feature is None:
            continue
        own = config.preprocessing is not None and listed is None
        is_list = feature.type in _TYPES and not loader.has_one_value(feature)
        if own and is_list:
            if problem := _shape_problem(feature):
                problems.add(path, problem, hint=_ONE_VALUE)
            continue
        spec = _derived(feature, schema) if own_spec is None else own_spec
        type_name = schema_pb2.FeatureType.Name(feature.type)
        if name == config.label.feature:
            problems.add(path, f"{name!r} is the label, which must not be a feature")
        elif spec is None:
            text = "an image" if feature.HasField("image_domain") else "this type"
            if is_list:
                text = "lists of numbers of different lengths"
            size = "kind: image, height: 28, width: 28, channels: 1"
            hint = f"list those to use, such as features: {{{name}: {{{size}}}}}"
            problems.add(path, f"no kind can be derived for {text}", hint=hint)
        elif type_name not in spec.types:
            text = f"{spec.kind!r} is not for {name!r}, which is {type_name}"
            problems.add((*path, "kind"), text)
        else:
            _check_values(path, feature, spec, problems)
            specs[name] = _completed(spec, feature, schema)
    return specs


def find_feature(
    path: KeyPath, name: str, schema: schema_pb2.Schema, problems: Problems
) -> schema_pb2.Feature | None:
    """Returns a feature of the schema; adds a problem at ``path`` if there is none."""
    features = {feature.name: feature for feature in schema.feature}
    if name not in features:
        problems.unknown(path, f"the schema has no feature {name!r}", name, features)
    return features.get(name)


def check_one_value(
    path: KeyPath,
    feature: schema_pb2.Feature,
    problems: Problems,
    *,
    optional: bool = False,
) -> None:
    """Adds a problem if records do not have exactly one value of a feature."""
    problem = _shape_problem(feature)
    if not loader.has_one_value(feature):
        problem = f"{feature.name!r} does not have exactly one value"
    elif not (feature.HasField("shape") or optional):
        problem = f"{feature.name!r} may be missing from a record"
    if problem:
        problems.add(path, problem, hint=_ONE_VALUE)


def _check_values(
    path: KeyPath, feature: schema_pb2.Feature, spec: FeatureSpec, problems: Problems
) -> None:
    """Adds a problem if records do not have as many values as a kind takes."""
    values, is_bytes = spec.values, feature.type == schema_pb2.BYTES
    if isinstance(spec, RawPixels):
        values = "every" if is_bytes else "fixed"
        count = math.prod(dim.size for dim in feature.shape.dim)
        if not is_bytes and feature.HasField("shape") and count != spec.size:
            text = f"{feature.name!r} has {count:,} values, not {spec.size:,}"
            problems.add(path, f"{text}: height times width times channels")
    elif isinstance(spec, Passthrough) and spec.length is None:
        values = "one" if loader.has_one_value(feature) else "fixed"
    match values:
        case "one" | "every":
            optional = values == "one"
            check_one_value(path, feature, problems, optional=optional)
        case "fixed" if not feature.HasField("shape"):
            text = f"{feature.name!r} has no fixed number of values"
            problems.add(path, text, hint=_FIXED_NUMBER)
        case _ if problem := _shape_problem(feature):
            problems.add(path, problem, hint=_FIXED_NUMBER)


def _check_cross(
    path: KeyPath,
    spec: Cross,
    config: Config,
    schema: schema_pb2.Schema,
    problems: Problems,
) -> None:
    """Adds problems of the name and the parts of a cross."""
    name, features = path[-1], config.features or {}
    if name in loader.feature_names(schema):
        problems.add(path, f"{name!r} is in the schema: a cross needs a new name")
    for index, part in enumerate(spec.of):
        other = features.get(part)
        if other is None:
            text = f"{part!r} is not listed in 'features'"
            problems.unknown((*path, "of", index), text, part, features)
        elif other.kind not in ("bucketized", "vocabulary", "hashed"):
            text = f"{part!r} has the kind {other.kind!r}"
            wanted = "bucketized, vocabulary or hashed"
            problems.add((*path, "of", index), text, expected=wanted)


def _shape_problem(feature: schema_pb2.Feature) -> str | None:
    if feature.HasField("shape") and feature.presence.min_fraction < 1:
        return f"{feature.name!r} has a shape and may be missing, which TFX cannot read"
    return None


def _derived(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> FeatureSpec | None:
    """Returns the kind derived from a feature's type; None if there is none."""
    values = loader.class_values(schema, feature.name)
    is_number = feature.type == schema_pb2.FLOAT or (
        feature.type == schema_pb2.INT and not feature.int_domain.is_categorical
    )
    if feature.type not in _TYPES or feature.HasField("image_domain"):
        return None
    if not loader.has_one_value(feature):
        if not is_number:
            return MultiHot()
        return Vector() if feature.HasField("shape") else None
    if is_number:
        return Numeric()
    if values is not None and len(values) <= LARGE_DOMAIN:
        return Vocabulary(top_k=len(values))
    return Hashed()


def _completed(
    spec: FeatureSpec, feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> FeatureSpec:
    """Returns a kind with what the schema knows."""
    if isinstance(spec, MultiHot) and spec.top_k is None:
        values = loader.class_values(schema, feature.name) or ()
        return spec.model_copy(update={"top_k": len(values) or CATEGORIES})
    return spec
