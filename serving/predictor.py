"""Predicts with one version of a model, in this process.

The signatures of the pushed SavedModel include preprocessing and class names.
TensorFlow is imported when a ``Predictor`` is created. This is not a server: there is
one caller, and no batching across callers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from serving.feature_values import MISSING, DType, FeatureType
from serving.prediction_rows import Row, read_rows
from sluice.compat import prepare_environment
from sluice.errors import DataError, ServingError, SluiceError
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES

BATCH_SIZE = 256
# Bounds the memory of a batch of photographs.
_BATCH_BYTES = 64 << 20
_EXAMPLES_SIGNATURE = "serving_default"
_VALUES_SIGNATURE = "predict_values"
_CLASSES_FILE = Path("assets.extra", "classes.json")
_REASON_LENGTH = 300
_DTYPES: tuple[DType, ...] = get_args(DType)


@dataclass(frozen=True)
class Prediction:
    """Prediction for one row.

    Attributes:
      source: the file, or ``stdin``.
      index: of the row in its source, from 0.
      label: the predicted class.
      probabilities: by class if the model has class names; otherwise the model's
        output: one per class, or the positive class's of a binary model.
    """

    source: str
    index: int
    label: str
    probabilities: dict[str, float] | list[float]


class Predictor:
    """A loaded SavedModel with the signatures of our trainer.

    ``serving_default`` takes ``examples``, string [N]; ``predict_values`` takes one [N]
    tensor per raw feature, [N, ...] where it is a vector. Both give ``probabilities``,
    float32 [N, C] ([N, 1] for a binary model), and ``label``, string [N, 1] or [N].

    Attributes:
      features: raw features of ``predict_values`` and their types.
    """

    def __init__(self, version_dir: str | Path) -> None:
        """Loads the model.

        Raises:
          ServingError: the model cannot be loaded or has other signatures.
        """
        prepare_environment()
        import tensorflow as tf

        self._tf = tf
        self._dir = Path(version_dir)
        self._model = self._load()
        self._examples = self._signature(_EXAMPLES_SIGNATURE)
        self._values = self._signature(_VALUES_SIGNATURE)
        self.features: dict[str, FeatureType] = self._feature_types()
        self._classes = self._class_names()

    def predict_files(
        self,
        paths: Sequence[str | Path],
        limit: int | None = None,
        max_row_bytes: int = MAX_RECORD_BYTES,
    ) -> Iterator[Prediction]:
        """Yields predictions in the order of the rows.

        Args:
          paths: see ``read_rows``.
          limit: number of rows to predict, over all files; None for all.
          max_row_bytes: limit of a record, an image or a line.

        Raises:
          UsageError, DataError: as ``read_rows``; or the model rejects a row, such as
            an image that does not decode. Rows before it have been predicted.
          ServingError: the model fails for another reason.
        """
        rows = read_rows(paths, self.features, max_row_bytes)
        for batch in _batches(islice(rows, limit)):
            yield from self._predict(batch)

    def _predict(self, batch: list[Row]) -> Iterator[Prediction]:
        invalid = self._tf.errors.InvalidArgumentError
        try:
            yield from self._run(batch)
        except invalid as error:
            if len(batch) == 1:
                raise DataError(
                    "the model cannot process this row",
                    where=batch[0].where,
                    actual=_reason(error),
                ) from error
            for row in batch:  # One by one, to name the bad row.
                yield from self._predict([row])

    def _run(self, batch: list[Row]) -> list[Prediction]:
        tf = self._tf
        payloads: list[Any] = [row.payload for row in batch]
        try:
            if isinstance(payloads[0], bytes):
                outputs = self._examples(examples=tf.constant(payloads, tf.string))
            else:
                outputs = self._values(
                    **{
                        name: self._column([values[name] for values in payloads], kind)
                        for name, kind in self.features.items()
                    }
                )
        except tf.errors.InvalidArgumentError:
            raise
        except tf.errors.OpError as error:
            raise ServingError(
                "the model failed during prediction",
                where=self._dir,
                actual=_reason(error),
            ) from error
        labels = outputs["label"].numpy().ravel().tolist()
        probabilities = outputs["probabilities"].numpy().tolist()
        return [
            Prediction(row.source, row.index, label.decode(), self._by_class(values))
            for row, label, values in zip(batch, labels, probabilities, strict=False)
        ]

    def _column(self, values: list[Any], kind: FeatureType) -> Any:
        if kind.shape == (None,):
            width = max(map(len, values))
            missing = MISSING[kind.dtype]
            values = [[*row, *[missing] * (width - len(row))] for row in values]
        column = self._tf.constant(values, kind.dtype)
        # Rows without values say nothing of their shape.
        return self._tf.ensure_shape(column, [None, *kind.shape])

    def _by_class(self, values: list[float]) -> dict[str, float] | list[float]:
        if self._classes is None:
            return values
        if len(values) == 1 and len(self._classes) == 2:
            values = [1.0 - values[0], values[0]]
        if len(values) != len(self._classes):
            raise ServingError(
                "the model's class names do not match its output",
                where=self._dir / _CLASSES_FILE,
                expected=f"{len(values)} classes",
                actual=f"{len(self._classes)}",
            )
        return dict(zip(self._classes, values, strict=False))

    def _load(self) -> Any:
        tf = self._tf
        try:
            return tf.saved_model.load(str(self._dir))
        except Exception as error:  # IndexError, for one, where bytes are missing.
            raise ServingError(
                "the model cannot be loaded",
                where=self._dir,
                actual=_reason(error),
                hint="push it again",
            ) from error

    def _signature(self, name: str) -> Any:
        signature = self._model.signatures.get(name)
        if signature is None:
            raise self._unexpected(
                f"a signature {name!r}", sorted(self._model.signatures)
            )
        outputs = sorted(signature.structured_outputs)
        if not {"label", "probabilities"} <= set(outputs):
            raise self._unexpected(f"'label', 'probabilities' from {name!r}", outputs)
        inputs = sorted(signature.structured_input_signature[1])
        if name == _EXAMPLES_SIGNATURE and inputs != ["examples"]:
            raise self._unexpected(f"one input 'examples' of {name!r}", inputs)
        return signature

    def _feature_types(self) -> dict[str, FeatureType]:
        specs = self._values.structured_input_signature[1]
        odd = [
            f"{name} ({spec.dtype.name} {spec.shape})"
            for name, spec in specs.items()
            if spec.dtype.name not in _DTYPES or not _is_batch(spec.shape)
        ]
        if odd:
            raise self._unexpected(
                f"inputs of {', '.join(_DTYPES)}, one value or a vector per row", odd
            )
        return {
            name: FeatureType(spec.dtype.name, tuple(spec.shape[1:].as_list()))
            for name, spec in sorted(specs.items())
        }

    def _class_names(self) -> list[str] | None:
        path = self._dir / _CLASSES_FILE
        try:
            classes = json.loads(path.read_text("utf-8"))["classes"]
            return [str(name) for name in classes]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ServingError(
                "the model's class names cannot be read",
                where=path,
                expected='{"classes": [...]}',
                actual=repr(error),
            ) from error

    def _unexpected(self, expected: str, found: list[str]) -> ServingError:
        return ServingError(
            "the model does not have the signatures that Sluice exports",
            where=self._dir,
            expected=expected,
            actual=", ".join(found) or "none",
        )


def _is_batch(shape: Any) -> bool:
    """Whether rows of that shape can be told apart and padded."""
    if not shape.rank:
        return False
    return shape.rank == 2 or None not in shape[1:].as_list()


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Groups rows that go to the same signature, bounded in number and bytes."""
    batch: list[Row] = []
    size_bytes = 0
    try:
        for row in rows:
            same_kind = not batch or type(row.payload) is type(batch[0].payload)
            if not same_kind or len(batch) == BATCH_SIZE or size_bytes > _BATCH_BYTES:
                yield batch
                batch, size_bytes = [], 0
            batch.append(row)
            size_bytes += _size_bytes(row)
    except SluiceError:
        if batch:
            yield batch  # The rows before the bad one.
        raise
    if batch:
        yield batch


def _size_bytes(row: Row) -> int:
    if isinstance(row.payload, bytes):
        return len(row.payload)
    return sum(len(v) for v in row.payload.values() if isinstance(v, bytes))


def _reason(error: Exception) -> str:
    """Returns the line with the reason in a long TensorFlow error.

    It is the first line; in a graph execution error the last before the node's name.
    """
    text = str(getattr(error, "message", error)).partition("[[{{node")[0]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1 if lines[0] == "Graph execution error:" else 0][:_REASON_LENGTH]
