"""What Transform gives to a training; by default one number ``a`` and two classes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.features import SAMPLE_WEIGHT_KEY
from pipeline.config.label import transformed_name
from tests.kit.trainings import feature_set

FEATURES = feature_set({"a": "numeric"})


class Output:
    """The parts of TFTransformOutput that are used; preprocessing changes nothing.

    Args:
      dtypes: of each feature.
      width: number of values of each number.
    """

    transform_savedmodel_dir = "none: there are no vocabularies"

    def __init__(self, dtypes: dict[str, str] | None = None, width: int = 1) -> None:
        self._dtypes = dtypes or {"a": "float32", "y": "int64"}
        self._width = width

    def transformed_feature_spec(self) -> dict[str, Any]:
        return _renamed(self.raw_feature_spec())

    def raw_feature_spec(self) -> dict[str, Any]:
        import tensorflow as tf

        return {
            name: tf.io.FixedLenFeature([self._width_of(dtype)], dtype)
            for name, dtype in self._dtypes.items()
        }

    @property
    def raw_metadata(self) -> Any:
        text = "".join(
            f"feature {{ name: '{name}' "
            f"shape {{ dim {{ size: {self._width_of(dtype)} }} }} }}"
            for name, dtype in self._dtypes.items()
        )
        return SimpleNamespace(schema=text_format.Parse(text, schema_pb2.Schema()))

    def transform_features_layer(self) -> Any:
        return _renamed

    def _width_of(self, dtype: str) -> int:
        return self._width if dtype == "float32" else 1


def _renamed(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        name if name == SAMPLE_WEIGHT_KEY else transformed_name(name): value
        for name, value in raw.items()
    }
