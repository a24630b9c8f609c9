"""Example requests to a model, with typical values from the run's statistics.

A request is the body of TensorFlow Serving's ``:predict``:
https://www.tensorflow.org/tfx/serving/api_rest#predict_api
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sluice.record.documents.privacy import Privacy
from sluice.tfrecords import tf_example_pb2

# One gray pixel, where there is no image to show.
_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
_MAX_VALUES = 10_000


class ExampleRequests:
    """Makes requests from the documents of a run that exist so far.

    Args:
      record_dir: the run's ``record/``.
      privacy: a sensitive feature has 0 or no text instead of a value.
    """

    def __init__(self, record_dir: Path, privacy: Privacy) -> None:
        self._privacy = privacy
        self._features = {
            feature["name"]: feature
            for artifact in _artifacts(record_dir, "statistics")
            for split in artifact["splits"][:1]
            # Those of transformed examples have no split.
            if split["split"] is not None
            for feature in split["features"]
        }
        self._images = {
            feature["name"]: base64.b64decode(image["data"].partition(",")[2])
            for artifact in _artifacts(record_dir, "samples")
            for feature in artifact["features"]
            for item in feature["gallery"][:1]
            for image in item["images"][:1]
            if image["data"]
        }

    def make(self, signature: str, inputs: list[dict[str, Any]]) -> Any:
        """Returns the body of a request of one row; None if it is not known how.

        Args:
          signature: its name.
          inputs: as in the model document. One of strings called ``examples`` takes
            serialized tf.Examples, others take a feature each.
        """
        names = [item["name"] for item in inputs]
        if names == ["examples"] and inputs[0]["dtype"] == "string":
            if not self._features:
                return None
            row: dict[str, Any] = {"examples": _b64(self._example())}
        else:
            known = {_identifier(name): name for name in self._features}
            row = {}
            for item in inputs:
                feature = self._features.get(known.get(_identifier(item["name"])))
                shape = item["shape"]
                if not shape or item["dtype"] not in _ZEROS:
                    return None
                row[item["name"]] = self._value(feature, item["dtype"], shape[1:])
                if row[item["name"]] is None:
                    return None
        return {"signature_name": signature, "instances": [row]} if row else None

    def _example(self) -> bytes:
        example: Any = tf_example_pb2.Example()
        for name, feature in self._features.items():
            if name == self._privacy.label or feature["type"] not in _KINDS:
                continue
            dtype, kind = _KINDS[feature["type"]]
            value = self._scalar(feature, dtype)
            encoded = value.encode() if isinstance(value, str) else value
            values = [encoded] * max(1, min(feature["min_values"], _MAX_VALUES))
            getattr(example.features.feature[name], kind).value.extend(values)
        return example.SerializeToString(deterministic=True)

    def _value(self, feature: Any, dtype: str, shape: list[int | None]) -> Any:
        """Returns a value, nested as the shape says; None if it is too large."""
        if math.prod(size or 1 for size in shape) > _MAX_VALUES:
            return None
        value = self._scalar(feature, dtype)
        found: Any = _b64(value) if isinstance(value, bytes) else value
        for size in reversed(shape):
            found = [found] * (size or 1)
        return found

    def _scalar(self, feature: Any, dtype: str) -> Any:
        """Returns a typical value: the median, the most frequent text, or an image."""
        zero = _ZEROS[dtype]
        if feature is None or feature["name"] in self._privacy.sensitive:
            return zero
        text, numeric = feature["string"], feature["numeric"]
        if dtype == "string":
            if (text and text["invalid_utf8"]) or feature["bytes"]:
                return self._images.get(feature["name"], _PNG)
            top = text["top_values"] if text else []
            return top[0]["value"] if top else zero
        value: Any = numeric["median"] if numeric else None
        if value is None and text and text["top_values"]:
            value = text["top_values"][0]["value"]
        try:
            number = float(value)
        except (TypeError, ValueError):
            return zero
        return type(zero)(number) if math.isfinite(number) else zero


_ZEROS: Mapping[str, Any] = {
    "string": "",
    "bool": False,
    **dict.fromkeys(("float16", "float32", "float64"), 0.0),
    **dict.fromkeys(("int8", "uint8", "int16", "int32", "int64"), 0),
}
# By the type in statistics: of the value, and of the tf.Example's list.
_KINDS = {
    "INT": ("int64", "int64_list"),
    "FLOAT": ("float32", "float_list"),
    "STRING": ("string", "bytes_list"),
    "BYTES": ("string", "bytes_list"),
}


def _artifacts(record_dir: Path, kind: str) -> Iterator[dict[str, Any]]:
    for path in sorted(record_dir.glob(f"*.{kind}.json")):
        yield from json.loads(path.read_bytes())["artifacts"][:1]


def _b64(data: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(data).decode()}


def _identifier(name: str) -> str:
    """Returns a name as signatures have it, see ``pipeline.config.feature_set``."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).removeprefix("feature_")
