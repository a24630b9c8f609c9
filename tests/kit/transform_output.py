"""What Transform gives to a training of one number ``a`` and a label of two classes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from tests.kit.trainings import feature_set

FEATURES = feature_set({"a": "numeric"})


class Output:
    """The parts of TFTransformOutput that training uses; a becomes a_xf as it is."""

    def transformed_feature_spec(self) -> dict[str, Any]:
        return self._spec("_xf")

    def raw_feature_spec(self) -> dict[str, Any]:
        return self._spec("")

    @property
    def raw_metadata(self) -> Any:
        one = "shape { dim { size: 1 } }"
        text = "".join(f"feature {{ name: '{name}' {one} }}" for name in "ay")
        return SimpleNamespace(schema=text_format.Parse(text, schema_pb2.Schema()))

    def transform_features_layer(self) -> Any:
        return lambda raw: {"a_xf": raw["a"]}

    def _spec(self, suffix: str) -> dict[str, Any]:
        import tensorflow as tf

        return {
            f"a{suffix}": tf.io.FixedLenFeature([1], tf.float32),
            f"y{suffix}": tf.io.FixedLenFeature([1], tf.int64),
        }
