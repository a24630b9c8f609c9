"""Infers a schema from records: types, presence, shapes and domains.

Unlike TFDV's inference from statistics, it adds a domain only where the observed values
look complete, and never for personal data. The result is meant to be reviewed.
"""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.semantic_type import (
    SemanticType,
    position_limit,
    semantic_type_of,
)
from pipeline.scaffold.summarize import FeatureSummary, Summary
from schemas.features import SERVING, TRAINING, min_fraction, set_number_of_values

_TYPES = {"int": schema_pb2.INT, "float": schema_pb2.FLOAT, "bytes": schema_pb2.BYTES}


def infer_schema(summary: Summary, label: str | None = None) -> schema_pb2.Schema:
    """Returns the inferred schema.

    Features without any value are left out, since their type is not known. The label
    gets a domain of its classes, and is not in the serving environment.
    """
    schema = schema_pb2.Schema(default_environment=[TRAINING, SERVING])
    for feature in summary.features.values():
        if feature.kind is None:
            continue
        found = schema.feature.add(name=feature.name, type=_TYPES[feature.kind])
        _add_presence(found, feature)
        if feature.name == label:
            found.not_in_environment.append(SERVING)
            _add_classes(schema, found, feature)
        else:
            _add_domain(schema, found, feature, semantic_type_of(feature))
    return schema


def _add_presence(found: schema_pb2.Feature, feature: FeatureSummary) -> None:
    found.presence.min_fraction = min_fraction(feature.present, feature.records)
    if found.presence.min_fraction:
        found.presence.min_count = 1
    set_number_of_values(
        found, feature.min_values, feature.max_values, always=feature.always
    )


def _add_classes(
    schema: schema_pb2.Schema, found: schema_pb2.Feature, feature: FeatureSummary
) -> None:
    if feature.kind == "bytes" and not feature.not_text:
        _add_strings(schema, found, feature)
    elif feature.kind == "int":
        _set_int_bounds(found, feature)
        found.int_domain.is_categorical = True


def _add_domain(
    schema: schema_pb2.Schema,
    found: schema_pb2.Feature,
    feature: FeatureSummary,
    semantic_type: SemanticType,
) -> None:
    if semantic_type.name in ("mixed_types", "rare", "sensitive"):
        return
    if semantic_type.name == "image":
        found.image_domain.SetInParent()
    elif feature.kind == "float":
        _add_float_domain(found, feature, semantic_type)
    elif feature.kind == "bytes":
        if semantic_type.name == "categorical" and semantic_type.closed:
            _add_strings(schema, found, feature)
    elif semantic_type.name == "categorical":
        found.int_domain.is_categorical = True
        if semantic_type.closed:
            _set_int_bounds(found, feature)
    elif semantic_type.name == "identifier":
        found.int_domain.is_categorical = True
    elif feature.low is not None and feature.low >= 0:
        found.int_domain.min = 0


def _add_float_domain(
    found: schema_pb2.Feature, feature: FeatureSummary, semantic_type: SemanticType
) -> None:
    domain = found.float_domain
    limit = position_limit(feature.name)
    if semantic_type.name == "position" and limit:
        domain.min, domain.max = -limit, limit
    elif feature.low is not None and feature.low >= 0:
        domain.min = 0
    if not feature.nans:
        domain.disallow_nan = True
    if not feature.infinities:
        domain.disallow_inf = True


def _add_strings(
    schema: schema_pb2.Schema, found: schema_pb2.Feature, feature: FeatureSummary
) -> None:
    found.domain = feature.name
    values = sorted(value for value in feature.counts if isinstance(value, bytes))
    schema.string_domain.add(
        name=feature.name, value=[value.decode() for value in values]
    )


def _set_int_bounds(found: schema_pb2.Feature, feature: FeatureSummary) -> None:
    found.int_domain.min = int(feature.low or 0)
    found.int_domain.max = int(feature.high or 0)
