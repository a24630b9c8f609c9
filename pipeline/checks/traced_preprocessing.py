"""Preprocessing traced before Transform runs, and run on a batch of made-up records.

No data is read. Analyzers give zeros, and vocabularies have an assumed size: neither
changes names, types and shapes of what the function returns, or the number of rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import schema_utils

from pipeline.config.features import (
    SAMPLE_WEIGHT_KEY,
    FeatureSet,
    Tokens,
    Vocabulary,
)
from pipeline.training.build import load_function
from sample_data.tf_example import encode
from schemas.loader import number_bounds, string_domain
from sluice.errors import ConfigError
from sluice.patches.tft import traced

# Only the data tells them.
VOCABULARY_SIZE = 1000
_RECORDS = 3
_MAX_VALUES = 3


class TracedPreprocessing:
    """Stands in for the ``tft.TFTransformOutput`` of a Transform that has not run.

    The preprocessing function is traced as Transform traces it.

    Attributes:
      assumptions: the assumed sizes of vocabularies, one line each.
      rows: by transformed feature, the number of rows for ``_RECORDS`` records; empty
        if the function cannot process made-up values.
    """

    def __init__(
        self, function: str, schema: schema_pb2.Schema, feature_set: FeatureSet
    ) -> None:
        preprocessing_fn = functools.partial(
            load_function(function),
            custom_config={"feature_set": feature_set.model_dump()},
        )
        raw = schema_utils.schema_as_feature_spec(schema).feature_spec
        self._function, self._feature_set = function, feature_set
        self.rows: dict[str, int] = {}
        with traced(preprocessing_fn, raw) as (function_of_batch, self._schema):
            weight, names = (
                feature_set.sample_weight,
                function_of_batch.structured_outputs,
            )
            self._keeps_weights = not weight or SAMPLE_WEIGHT_KEY in names
            with suppress(tf.errors.OpError):
                records = tf.io.parse_example(made_up_records(schema), raw)
                outputs = function_of_batch(
                    *tf.nest.flatten(records, expand_composites=True)
                )
                self.rows = {
                    name: int(value.shape[0]) for name, value in outputs.items()
                }
                if weight and self._keeps_weights:
                    pair = (records[weight], outputs[SAMPLE_WEIGHT_KEY])
                    self._keeps_weights = np.array_equal(*pair)
        self._sizes = {
            feature_set.vocabulary_names[name]: spec.top_k or VOCABULARY_SIZE
            for name, spec in feature_set.features.items()
            if isinstance(spec, Vocabulary | Tokens)
        }
        self.assumptions = [
            f"{size:,} values in the vocabulary {name}"
            for name, size in self._sizes.items()
        ]

    def check(self) -> None:
        """Raises if the outputs are not what training needs.

        Raises:
          ConfigError: the label is missing or not of class ids, there is not one row
            per record, or the weights are missing or others.
        """
        spec, label = self.transformed_feature_spec(), self._feature_set.label
        if not self._keeps_weights:
            weight = self._feature_set.sample_weight
            raise ConfigError(
                f"{self._function} does not return the weights of {weight!r} as "
                f"{SAMPLE_WEIGHT_KEY!r}",
                hint=f"return tf.cast(inputs[{weight!r}], tf.float32): the model gate "
                "reads them from the records",
            )
        if label.key not in spec:
            raise ConfigError(
                f"{self._function} does not return {label.key!r}, the label",
                actual=", ".join(spec),
                hint="add it, or extend the result of pipeline.training.preprocessing."
                "preprocessing_fn",
            )
        label_spec, is_ids = spec[label.key], label.task == "classification"
        size = {"classification": 1, "multi_label": len(label.class_names)}
        shape = [size.get(label.task, *getattr(label_spec, "shape", [])[:1])]
        wanted = tf.io.FixedLenFeature(shape, tf.int64 if is_ids else tf.float32)
        if label_spec != wanted:
            raise ConfigError(
                f"{self._function} does not return the label of a {label.task}",
                expected=str(wanted),
                actual=str(label_spec),
                hint=f"{label.key!r}: pipeline.training.preprocessing.label_values("
                f"inputs[{label.feature!r}], label) returns it",
            )
        for name, rows in self.rows.items():
            if rows != _RECORDS:
                raise ConfigError(
                    f"{self._function} returns {rows} rows of {name!r} for {_RECORDS} "
                    "records",
                    hint="return one row per record, also of records without values",
                )

    def transformed_feature_spec(self) -> dict[str, Any]:
        """Returns the parsing spec of the transformed examples."""
        return dict(schema_utils.schema_as_feature_spec(self._schema).feature_spec)

    def vocabulary_size_by_name(self, name: str) -> int:
        """Returns the assumed number of values in a vocabulary."""
        return self._sizes[name]


def made_up_records(schema: schema_pb2.Schema) -> list[bytes]:
    """Returns different records that conform to a schema.

    The last one lacks all values that a record may lack.
    """
    return [
        encode(
            {
                feature.name: values
                for feature in schema.feature
                if (values := _values(feature, schema, index))
            }
        )
        for index in range(_RECORDS)
    ]


def _values(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema, index: int
) -> Sequence[Any]:
    """Returns the values of a feature in a record; none of a structure."""
    left = _RECORDS - 1 - index
    if feature.HasField("shape"):
        count = math.prod(dimension.size for dimension in feature.shape.dim)
    elif not left and feature.presence.min_fraction < 1:
        count = 0
    else:
        limits = feature.value_count
        low, high = limits.min, limits.max or max(limits.min, _MAX_VALUES)
        count = min(high, low + left)
    return [_value(feature, schema, index)] * count


def _value(
    feature: schema_pb2.Feature, schema: schema_pb2.Schema, index: int
) -> float | bytes:
    if feature.type == schema_pb2.BYTES:
        if feature.HasField("image_domain"):
            return tf.io.encode_png(tf.zeros([8, 8, 3], tf.uint8)).numpy()
        domain = string_domain(feature, schema)
        values = domain.value if domain else ()
        return values[index % len(values)].encode() if values else b"%d" % index
    low, high = number_bounds(feature) or (None, None)
    value = index if low is None else low + index
    kind = float if feature.type == schema_pb2.FLOAT else int
    return kind(value if high is None else min(value, high))
