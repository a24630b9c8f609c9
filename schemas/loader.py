"""Reads a reviewed schema, without TensorFlow, and answers what a config asks of it.

A file that is not a schema is refused here, with the line, before a run starts. Whether
data fits the schema is TFDV's business, not this module's.
"""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path

from google.protobuf import message, text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.features import string_domain
from schemas.limits import invalid_entries
from sluice.errors import ConfigError

# A categorical domain wider than this, such as census tracts, is no list of classes.
MAX_CLASSES = 10_000

_EXAMPLE = "See schemas/digits/schema.pbtxt for an example."


def load(path: str | Path) -> schema_pb2.Schema:
    """Reads a schema in protobuf's text format.

    Raises:
      ConfigError: the file cannot be read, is not a schema, declares no features,
        declares one twice, has an entry that cannot work, or refers to a domain that
        it does not declare.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            "The schema cannot be read.",
            where=path,
            expected="a text file with a tensorflow.metadata.v0.Schema",
            actual=error.strerror or str(error),
            hint="Check the key `schema` of the config.",
        ) from error
    except UnicodeDecodeError as error:
        raise _not_a_schema(path, f"byte {error.start} is not UTF-8 text") from error
    try:
        schema = text_format.Parse(text, schema_pb2.Schema())
        # As TFDV gets it. protobuf writes messages that it cannot read: those nested
        # more than 100 deep.
        schema_pb2.Schema.FromString(schema.SerializeToString())
    except text_format.ParseError as error:
        raise _not_a_schema(_at(path, error), str(error)) from error
    except (RecursionError, message.Error) as error:
        raise _not_a_schema(path, "messages nested more than 100 deep") from error
    _check(path, schema)
    return schema


def feature_names(schema: schema_pb2.Schema) -> list[str]:
    """Returns the names of the features in the order of the schema."""
    return [feature.name for feature in schema.feature]


def class_values(schema: schema_pb2.Schema, name: str) -> list[int] | list[str] | None:
    """Returns the values that a feature may take, if its domain lists them.

    They come from a categorical ``int_domain`` with both bounds, or from a
    ``string_domain``, its own or one of the schema's. Any other feature gives None, and
    so does a domain of more than ``MAX_CLASSES`` values.

    Raises:
      ConfigError: the schema has no feature of this name.
    """
    feature = _feature(schema, name)
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
    """Whether a record has one value of the feature or none, and no vector."""
    if feature.HasField("shape"):
        return [dimension.size for dimension in feature.shape.dim] == [1]
    return feature.value_count.max == 1


def _feature(schema: schema_pb2.Schema, name: str) -> schema_pb2.Feature:
    for feature in schema.feature:
        if feature.name == name:
            return feature
    known = feature_names(schema)
    near = difflib.get_close_matches(name, known, n=1)
    raise ConfigError(
        f"The schema has no feature named {name!r}.",
        expected=f"one of its features: {', '.join(known)}",
        hint=f"Did you mean {near[0]!r}?" if near else None,
    )


def _check(path: Path, schema: schema_pb2.Schema) -> None:
    if not schema.feature:
        raise ConfigError(
            "The schema declares no features.",
            where=path,
            expected="a `feature { name: ... type: ... }` for every feature",
            actual="an empty file" if not path.stat().st_size else "no feature",
            hint=_EXAMPLE,
        )
    if invalid := list(invalid_entries(schema)):
        raise ConfigError(
            "The schema has entries that cannot work.",
            where=path,
            examples=invalid,
            hint="Correct them, or take them out.",
        )
    counts = Counter(feature_names(schema))
    twice = [f"feature {name!r}" for name, count in counts.items() if count > 1]
    if twice:
        raise ConfigError(
            "The schema declares a feature more than once.",
            where=path,
            examples=twice,
            hint="Keep one declaration of each.",
        )
    domains = {domain.name for domain in schema.string_domain}
    dangling = [
        f"feature {feature.name!r}: domain {feature.domain!r}"
        for feature in schema.feature
        if feature.HasField("domain") and feature.domain not in domains
    ]
    if dangling:
        raise ConfigError(
            "The schema refers to a domain that it does not declare.",
            where=path,
            examples=dangling,
            expected=f"one of {', '.join(sorted(domains))}" if domains else None,
            hint="Declare it: string_domain { name: ... value: ... }",
        )


def _at(path: Path, error: text_format.ParseError) -> str:
    line = error.GetLine()
    return str(path) if line is None else f"{path}, line {line}"


def _not_a_schema(where: Path | str, actual: str) -> ConfigError:
    return ConfigError(
        "This file is not a schema.",
        where=where,
        expected="protobuf text of a tensorflow.metadata.v0.Schema",
        actual=actual,
        hint=_EXAMPLE,
    )
