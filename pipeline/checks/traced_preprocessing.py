"""Preprocessing traced before Transform runs.

No data is read. Vocabularies have an assumed size, which does not change names, types
and shapes of what the function returns.
"""

from __future__ import annotations

import functools
from typing import Any

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
from sluice.errors import ConfigError
from sluice.patches.tft import trace

# Only the data tells them.
VOCABULARY_SIZE = 1000


class TracedPreprocessing:
    """Stands in for the ``tft.TFTransformOutput`` of a Transform that has not run.

    The preprocessing function is traced as Transform traces it.
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
        self._schema = trace(preprocessing_fn, raw)
        self._sizes = {
            feature_set.vocabulary_names[name]: spec.top_k or VOCABULARY_SIZE
            for name, spec in feature_set.features.items()
            if isinstance(spec, Vocabulary | Tokens)
        }

    def check(self) -> None:
        """Raises if the outputs are not what training needs.

        Raises:
          ConfigError: the label is missing or not of class ids, or the weights are
            missing.
        """
        spec, label = self.transformed_feature_spec(), self._feature_set.label
        weight = self._feature_set.sample_weight
        if weight and SAMPLE_WEIGHT_KEY not in spec:
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

    def transformed_feature_spec(self) -> dict[str, Any]:
        """Returns the parsing spec of the transformed examples."""
        return dict(schema_utils.schema_as_feature_spec(self._schema).feature_spec)

    def vocabulary_size_by_name(self, name: str) -> int:
        """Returns the assumed number of values in a vocabulary."""
        return self._sizes[name]
