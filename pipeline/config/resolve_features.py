"""Features and classes: those of the config, checked, or else derived from the schema.

Without ``features`` in the config, every feature of the schema but the label and the
sample weight is used, with a kind derived from its type. The size of an image is never
derived.
"""

from __future__ import annotations

from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import FeatureSpec, Hashed, Numeric, Vocabulary
from pipeline.config.problems import KeyPath, Problems
from schemas import loader
from sluice.config_section import Classes

LARGE_DOMAIN = 1000

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


def resolve_classes(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> Classes:
    """Returns the label's classes: the config's, or else those of its domain.

    Adds problems of the label; the classes are empty if they are wrong.
    """
    name, path = config.label.feature, ("label", "feature")
    feature = find_feature(path, name, schema, problems)
    if feature is None:
        return ()
    type_name = schema_pb2.FeatureType.Name(feature.type)
    if type_name not in ("INT", "BYTES"):
        what = f"the label {name!r} must be categorical: INT or BYTES, not {type_name}"
        problems.add(path, what)
        return ()
    check_one_value(path, feature, problems)
    values: Any = tuple(loader.class_values(schema, name) or ())
    classes = config.label.classes or values
    path = ("label", "classes")
    if len(values) < 2:
        domain = "string_domain" if type_name == "BYTES" else "categorical int_domain"
        what = f"the schema does not list the classes of {name!r}: give it a {domain}"
        problems.add(path, what)
    elif {*values} != {*classes}:
        shown = ", ".join(map(str, values[:12])) + (" ..." if len(values) > 12 else "")
        what = f"the classes are not those of the schema's domain: {shown}"
        problems.add(path, what, hint="change the one that is wrong")
    else:
        return classes
    return ()


def resolve_features(
    config: Config, schema: schema_pb2.Schema, problems: Problems
) -> dict[str, FeatureSpec]:
    """Returns each feature's kind: the config's, or else derived from the schema.

    FLOAT becomes numeric, and so does INT unless its domain is categorical. Categorical
    INT, and BYTES, becomes a vocabulary of the size of its domain, or hashed without a
    domain or with more than 1,000 values. Vectors are left to the user's own
    preprocessing.
    """
    listed, specs = config.features, {}
    no_features = (config.label.feature, config.train.sample_weight)
    derived = [item.name for item in schema.feature if item.name not in no_features]
    for name in derived if listed is None else listed:
        path: KeyPath = ("features", name)
        feature = find_feature(path, name, schema, problems)
        if feature is None:
            continue
        kinds = _KINDS_OF_TYPE.get(feature.type, ())
        own = config.preprocessing is not None and listed is None
        if own and kinds and not loader.has_one_value(feature):
            if problem := _shape_problem(feature):
                problems.add(path, problem, hint=_ONE_VALUE)
            continue
        spec = _derived(feature, schema) if listed is None else listed[name]
        is_image = spec is not None and spec.kind == "image"
        check_one_value(path, feature, problems, optional=not is_image)
        if name == config.label.feature:
            problems.add(path, f"{name!r} is the label, which must not be a feature")
        elif spec is None:
            what = "an image" if feature.HasField("image_domain") else "this type"
            size = "kind: image, height: 28, width: 28, channels: 1"
            hint = f"list those to use, such as features: {{{name}: {{{size}}}}}"
            problems.add(path, f"no kind can be derived for {what}", hint=hint)
        elif spec.kind not in kinds:
            type_name = schema_pb2.FeatureType.Name(feature.type)
            what = f"{spec.kind!r} is not for {name!r}, which is {type_name}"
            problems.add((*path, "kind"), what, expected="one of " + ", ".join(kinds))
        else:
            specs[name] = spec
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


def _shape_problem(feature: schema_pb2.Feature) -> str | None:
    if feature.HasField("shape") and feature.presence.min_fraction < 1:
        return f"{feature.name!r} has a shape and may be missing, which TFX cannot read"
    return None


def _derived(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> FeatureSpec | None:
    """Returns the kind derived from a feature's type; None if there is none."""
    values = loader.class_values(schema, feature.name)
    match feature.type:
        case schema_pb2.FLOAT:
            return Numeric()
        case schema_pb2.INT if not feature.int_domain.is_categorical:
            return Numeric()
        case schema_pb2.BYTES if feature.HasField("image_domain"):
            return None
        case schema_pb2.INT | schema_pb2.BYTES:
            if values is not None and len(values) <= LARGE_DOMAIN:
                return Vocabulary(top_k=len(values))
            return Hashed()
    return None
