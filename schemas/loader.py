"""Loads a reviewed schema without TensorFlow, and reads properties of its features.

An invalid file is rejected with the line, before a run starts. Data is not compared
with the schema here.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import schema_pb2

from sluice.errors import ConfigError

# Environments of training and serving data.
TRAINING, SERVING = "TRAINING", "SERVING"

# TFDV does not validate features in other stages.
LIVE_STAGES = {
    schema_pb2.UNKNOWN_STAGE,
    schema_pb2.BETA,
    schema_pb2.PRODUCTION,
    schema_pb2.VALIDATION_DERIVED,
}

# The name of a feature's list in a tf.Example, by its type.
LISTS_OF_TYPES: dict[int, str] = {
    schema_pb2.BYTES: "bytes_list",
    schema_pb2.INT: "int64_list",
    schema_pb2.FLOAT: "float_list",
}

Bounds = tuple[float | None, float | None]

# A larger categorical domain, such as census tracts, is not a list of classes.
MAX_CLASSES = 10_000

_NAMED = {"Feature", "SparseFeature", "WeightedFeature"}
_LISTS = {"domain", "string_domain"}
_NUMBERS = (schema_pb2.INT, schema_pb2.FLOAT)


def invalid_entries(message: Message, path: str = "") -> Iterator[str]:
    """Yields a line for each invalid entry of a schema, with its path.

    Args:
      message: a schema, or a part of one.
      path: of the part.
    """
    if message.DESCRIPTOR.name in _NAMED and not getattr(message, "name", ""):
        yield f"{path} has no name"
    if isinstance(message, schema_pb2.Feature):
        yield from _unmeasured(message, path)
    if isinstance(message, schema_pb2.DatasetConstraints):
        for key in ("num_examples_drift_comparator", "num_examples_version_comparator"):
            if message.HasField(key):
                yield f"{path}.{key} is not measured: set validate.max_count_change"
    for field, value in message.ListFields():
        place = f"{path}.{field.name}".removeprefix(".")
        if field.message_type is None:
            is_limit = field.name.startswith(("min", "max", "threshold"))
            if is_limit and isinstance(value, float) and math.isnan(value):
                yield f"{place} is NaN; every comparison with NaN is false"
        elif isinstance(value, Message):
            yield from invalid_entries(value, place)
        elif not field.message_type.GetOptions().map_entry:
            for number, entry in enumerate(value, start=1):
                name = getattr(entry, "name", "")
                which = repr(name) if name else f"number {number}"
                yield from invalid_entries(entry, f"{place} {which}")


def is_counted(feature: schema_pb2.Feature) -> bool:
    """Whether an integer has an ``infinity_norm``, which compares counts of values."""
    comparators = feature.drift_comparator, feature.skew_comparator
    has_norm = any(x.HasField("infinity_norm") for x in comparators)
    return has_norm and feature.int_domain.is_categorical


def _unmeasured(feature: schema_pb2.Feature, path: str) -> Iterator[str]:
    """Yields limits that TFDV would not measure, which would look like a pass."""
    domain = feature.WhichOneof("domain_info")
    if feature.HasField("distribution_constraints") and domain not in _LISTS:
        yield f"{path}.distribution_constraints needs a string_domain or domain"
    for key in ("drift_comparator", "skew_comparator"):
        comparator = getattr(feature, key)
        limits = [limit for _, limit in comparator.ListFields()]
        is_limited = any(limit.HasField("threshold") for limit in limits)
        if feature.HasField(key) and not is_limited:
            yield f"{path}.{key} has no threshold"
        is_number = feature.type in _NUMBERS and not is_counted(feature)
        if is_number and comparator.HasField("infinity_norm"):
            problem = "is not measured on numbers: write jensen_shannon_divergence"
            yield f"{path}.{key}.infinity_norm {problem}"
    for key in ("minimum_supported_image_fraction", "max_image_byte_size"):
        if getattr(feature.image_domain, key):
            yield f"{path}.image_domain.{key} is not measured: set examples.images"


def load(path: str | Path) -> schema_pb2.Schema:
    """Reads a schema in protobuf's text format.

    Raises:
      ConfigError: the file cannot be read, is not a schema, declares no features or one
        twice, has an invalid entry, or refers to a domain that it does not declare.
    """
    return parse(read_text(path), path)


def read_text(path: str | Path) -> str:
    """Returns a schema's text with its own line ends.

    Raises:
      ConfigError: it cannot be read.
    """
    try:
        return Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"the schema cannot be read: {error}"
        raise ConfigError(what, where=path) from error


def parse(text: str, path: str | Path) -> schema_pb2.Schema:
    """Returns the schema of a text; raises as ``load`` does, with the path."""
    try:
        schema = text_format.Parse(text, schema_pb2.Schema())
    except text_format.ParseError as error:
        line = error.GetLine()
        where = path if line is None else f"{path}, line {line}"
        raise _not_a_schema(where, str(error)) from error
    if not schema.feature:
        raise _not_a_schema(path, "it declares no feature")
    if invalid := [*invalid_entries(schema), *_invalid_names(schema)]:
        problem = "the schema has entries that cannot work"
        raise ConfigError(problem, where=path, examples=invalid)
    return schema


def feature_names(schema: schema_pb2.Schema) -> list[str]:
    """Returns the names of the features in the order of the schema."""
    return [feature.name for feature in schema.feature]


def class_values(schema: schema_pb2.Schema, name: str) -> list[int] | list[str] | None:
    """Returns the values of a feature's domain, if they are listed.

    The domain is a categorical ``int_domain`` with both bounds, or a string domain. For
    other domains, and more than ``MAX_CLASSES`` values, the result is None.
    """
    feature = next(item for item in schema.feature if item.name == name)
    values: list[int] | list[str] | None = None
    if strings := string_domain(feature, schema):
        values = list(strings.value)
    elif feature.int_domain.is_categorical:
        bounds = feature.int_domain
        if bounds.HasField("min") and bounds.HasField("max"):
            count = bounds.max - bounds.min + 1
            values = list(range(bounds.min, bounds.min + min(count, MAX_CLASSES + 1)))
    return values if values and len(values) <= MAX_CLASSES else None


def has_one_value(feature: schema_pb2.Feature) -> bool:
    """Whether a record has at most one value of the feature."""
    if feature.HasField("shape"):
        return [dimension.size for dimension in feature.shape.dim] == [1]
    return feature.value_count.max == 1


def list_features(schema: schema_pb2.Schema) -> tuple[str, ...]:
    """Returns the features of which a record may have several values."""
    return tuple(x.name for x in live_features(schema) if not has_one_value(x))


def list_types(schema: schema_pb2.Schema) -> dict[str, str]:
    """Returns the kind of list of each feature that has one, see LISTS_OF_TYPES."""
    kinds = ((x.name, LISTS_OF_TYPES.get(x.type)) for x in live_features(schema))
    return {name: kind for name, kind in kinds if kind}


def live_features(schema: schema_pb2.Schema) -> list[schema_pb2.Feature]:
    """Returns the schema's features that TFDV validates, in its order."""
    return [
        feature
        for feature in schema.feature
        if feature.lifecycle_stage in LIVE_STAGES and not feature.deprecated
    ]


def string_domain(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> schema_pb2.StringDomain | None:
    """Returns the feature's inline or named string domain; None if it has neither."""
    if feature.HasField("string_domain"):
        return feature.string_domain
    named = (item for item in schema.string_domain if item.name == feature.domain)
    return next(named, None) if feature.HasField("domain") else None


def number_bounds(feature: schema_pb2.Feature) -> Bounds | None:
    """Returns the domain's minimum and maximum, None for an open end.

    None if the feature has no numeric domain.
    """
    key = feature.WhichOneof("domain_info")
    if key not in ("int_domain", "float_domain"):
        return None
    domain = getattr(feature, key)
    return (
        domain.min if domain.HasField("min") else None,
        domain.max if domain.HasField("max") else None,
    )


def without_values(
    schema: schema_pb2.Schema, sensitive: Collection[str]
) -> schema_pb2.Schema:
    """Returns a copy in which sensitive features have no domain."""
    public = copy.deepcopy(schema)
    for feature in public.feature:
        domain = feature.WhichOneof("domain_info")
        if feature.name in sensitive and domain not in (None, "image_domain"):
            feature.ClearField(domain)
    used = {feature.domain for feature in public.feature}
    kept = [domain for domain in public.string_domain if domain.name in used]
    del public.string_domain[:]
    public.string_domain.extend(kept)
    return public


def _invalid_names(schema: schema_pb2.Schema) -> Iterator[str]:
    """Yields features that are declared twice or have an undeclared domain."""
    for name, count in Counter(feature_names(schema)).items():
        if count > 1 and name:
            yield f"feature {name!r} is declared {count} times"
    domains = {domain.name for domain in schema.string_domain}
    for feature in schema.feature:
        if feature.HasField("domain") and feature.domain not in domains:
            yield (
                f"feature {feature.name!r} has the domain {feature.domain!r}, which is "
                "not declared: string_domain { name: ... value: ... }"
            )


def _not_a_schema(where: Path | str, actual: str) -> ConfigError:
    return ConfigError(
        f"this file is not a schema, protobuf text such as TFDV writes: {actual}",
        where=where,
    )
