"""Predicts with one version of a model, in this process or behind a server.

The signatures of the pushed SavedModel include preprocessing and class names.
TensorFlow is imported when a ``Predictor`` is created.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from serving.prediction_rows import Row, is_missing, read_rows
from serving.remote_model import RemoteModel
from serving.signatures import EXAMPLES, VALUES, as_json, column_of, without
from sluice.compat import prepare_environment
from sluice.errors import DataError, ServingError, SluiceError, bounded
from sluice.metrics import THRESHOLD
from sluice.model_facts import CLASSES_FILE, read_facts
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.row_encoding import BYTES, FLOAT, INT

# Calls a signature: a tensor or array by name in and out.
Signature = Callable[[Mapping[str, Any]], Mapping[str, Any]]
BATCH_SIZE = 64
_log = logging.getLogger("sluice")
_REASON_LENGTH = 300
_NOISE = re.compile(r"\{\{function_node .*?\}\} ?| \[Op:.*|\[\[\{\{node(.|\n)*")


@dataclass(frozen=True)
class Prediction:
    """Prediction for one row.

    Attributes:
      source: the file, or ``stdin``.
      index: of the row in its source, from 0.
      label: the predicted class; None of a regression or several labels.
      labels: of several labels, the classes with a probability of at least 0.5.
      probabilities: by class; None of a regression.
      prediction: the number of a regression, or of several by target, a list if the
        model does not name them; otherwise None.
      missing: features without a value that the schema has in every record.
      id: the value that identifies the row, if one was asked for.
      log: the row and the answer as a serialized ``PredictionLog``, if asked for.
    """

    source: str
    index: int
    label: str | None = None
    labels: list[str] | None = None
    probabilities: dict[str, float] | None = None
    prediction: float | dict[str, float] | list[float] | None = None
    missing: list[str] | None = None
    id: str | bytes | int | float | None = None
    log: bytes | None = None

    def to_dict(self, id_feature: str | None = None) -> dict[str, Any]:
        """Returns the JSON form, the id first: no log, and nothing that is None."""
        values = {name: x for name, x in asdict(self).items() if x is not None}
        values.pop("log", None)
        own = as_json(values.pop("id", None))
        return values if id_feature is None else {id_feature: own, **values}


@dataclass(frozen=True)
class Logged:
    """How predictions are logged.

    Attributes:
      name: of the model.
      version: its number.
      left_out: features that the logs leave out.
    """

    name: str
    version: int
    left_out: Sequence[str]


class Predictor:
    """A SavedModel with the signatures of our trainer, loaded here or by a server.

    ``serving_default`` takes serialized examples, string [N]; ``predict_values`` takes
    one [N] tensor per raw feature, [N, ...] where it is a vector. Both give
    ``probabilities``, float32 [N, C] ([N, 1] for a binary model), and ``label``, string
    [N, 1] or [N]; a regression gives ``prediction``, float32 [N, K].

    Attributes:
      features: ``tf.TensorSpec`` of each raw feature of ``predict_values``.
      inputs: the name in ``predict_values`` of each raw feature.
    """

    def __init__(
        self, version_dir: str | Path, remote: RemoteModel | None = None
    ) -> None:
        """Loads the model, unless a server has it.

        Args:
          version_dir: of the SavedModel; an address only with ``remote``.
          remote: calls the same version on a server.

        Raises:
          ServingError: the model cannot be loaded or has other signatures.
          RemoteError: the server does not answer.
        """
        prepare_environment()
        import tensorflow as tf

        self._tf = tf
        self._dir = version_dir
        try:
            about = read_facts(version_dir)
            self._task, self._classes = about["task"], about["classes"]
            self._targets = about.get("targets", ())
            self._outputs = ["probabilities", "label"]
            if self._task == "regression":
                self._outputs = ["prediction"]
            specs = self._signatures(remote)
            self._known = known = about["features"]
            self.inputs = {name: item["input"] for name, item in known.items()}
            self.features = {name: specs[key] for name, key in self.inputs.items()}
            self._required = {name for name, item in known.items() if item["required"]}
            # Models of earlier versions do not say it.
            self._expected = [x for x in known if known[x].get("in_every_record")]
        except SluiceError:
            raise
        except Exception as error:  # IndexError, for one, where bytes are missing.
            raise ServingError(
                f"the model cannot be loaded: {type(error).__name__}: {_reason(error)}",
                where=self._dir,
                hint="push it again",
            ) from error

    def _signatures(self, remote: RemoteModel | None) -> Mapping[str, Any]:
        """Finds both signatures; returns the specs of the inputs of the second."""
        self._examples: Signature
        self._values: Signature
        if remote:
            self._examples = partial(remote.call, EXAMPLES)
            self._values = partial(remote.call, VALUES)
            (self._examples_input,) = remote.input_specs(EXAMPLES)
            return remote.input_specs(VALUES)
        # Its variables live as long as it.
        self._model = self._tf.saved_model.load(str(self._dir))
        loaded = [self._model.signatures[x] for x in (EXAMPLES, VALUES)]
        for signature in loaded:
            if not {*self._outputs} <= {*signature.structured_outputs}:
                raise ValueError(f"outputs {sorted(signature.structured_outputs)}")
        self._examples, self._values = map(_called_by_keyword, loaded)
        examples, values = (x.structured_input_signature[1] for x in loaded)
        (self._examples_input,) = examples
        return values

    def predict_files(
        self,
        paths: Sequence[str | Path],
        limit: int | None = None,
        max_row_bytes: int = MAX_RECORD_BYTES,
        id_feature: str | None = None,
        logged: Logged | None = None,
    ) -> Iterator[Prediction]:
        """Yields one prediction per row, in the order of the rows.

        Args:
          paths: see ``read_rows``.
          limit: number of rows to predict, over all files; None for all.
          max_row_bytes: limit of a record, an image or a line.
          id_feature: whose value each prediction gets as its ``id``.
          logged: how each prediction gets its ``log``; None for predictions without.

        Features that the schema has in every record and rows lack are a warning in the
        log ``sluice``.

        Raises:
          UsageError, DataError: as ``read_rows``; or the model rejects a row, such as
            an image that does not decode, or predicts NaN, which is not JSON. Rows
            before it have been predicted.
          ServingError: the model fails for another reason, such as one that returns
            fewer predictions than rows.
        """
        kinds = {"int64": INT, "float32": FLOAT, "string": BYTES}
        types = {x: kinds[y.dtype.name] for x, y in self.features.items()}
        rows = read_rows(paths, types, max_row_bytes, id_feature)
        lacking: Counter[str] = Counter()
        for batch in _batches(islice(rows, limit)):
            for prediction in self._predict(batch, logged):
                lacking.update(prediction.missing or ())
                yield prediction
        if lacking:
            counts = [f"{name!r} ({rows:,})" for name, rows in lacking.most_common()]
            what = "rows lack features that the schema has in every record; the model "
            _log.warning(f"{what}took them for missing: {', '.join(bounded(counts))}")

    def _predict(self, batch: list[Row], logged: Logged | None) -> Iterator[Prediction]:
        refusals = (self._tf.errors.InvalidArgumentError, TypeError, ValueError)
        try:
            yield from self._run(batch, logged)
        except refusals as error:
            if len(batch) == 1:
                raise DataError(
                    f"the model cannot process this row: {_reason(error)}",
                    where=batch[0].where,
                ) from error
            for row in batch:  # One by one, to name the bad row.
                yield from self._predict([row], logged)

    def _run(self, batch: list[Row], logged: Logged | None) -> list[Prediction]:
        tf = self._tf
        payloads: list[Any] = [row.payload for row in batch]
        columns: dict[str, Any] = {}
        try:
            if isinstance(payloads[0], bytes):
                records = tf.constant(payloads, tf.string)
                outputs = self._examples({self._examples_input: records})
            else:
                columns = {
                    key: self._column(name, [row.get(name) for row in payloads])
                    for name, key in self.inputs.items()
                }
                outputs = self._values(columns)
        except tf.errors.InvalidArgumentError:
            raise
        except tf.errors.OpError as error:
            raise self._failure(_reason(error)) from error
        if not tf.reduce_all(tf.math.is_finite(outputs[self._outputs[0]])):
            raise ValueError("its prediction is not a finite number")
        answered = {x: np.asarray(outputs[x]).tolist() for x in self._outputs}
        if {len(values) for values in answered.values()} != {len(batch)}:
            counts = {name: len(values) for name, values in answered.items()}
            raise self._failure(f"{len(batch)} rows have other numbers of {counts}")
        predictions = [
            self._prediction(row, self._answer(*values))
            for row, *values in zip(batch, *answered.values(), strict=True)
        ]
        if logged is None:
            return predictions
        logs = self._logs(logged, columns or payloads, outputs)
        return [replace(x, log=y) for x, y in zip(predictions, logs, strict=True)]

    def _logs(
        self,
        logged: Logged,
        asked: dict[str, Any] | list[bytes],
        outputs: Mapping[str, Any],
    ) -> Iterator[bytes]:
        """Yields the log of each row: serialized ones, or columns of plain values."""
        from tensorflow_serving.apis.model_pb2 import ModelSpec

        from serving.prediction_logs import examples_of, logs_of

        if isinstance(asked, dict):
            signature = VALUES
            inputs = {key: np.asarray(x) for key, x in asked.items()}
            examples = [*examples_of(inputs, self._known, logged.left_out)]
        else:
            signature = EXAMPLES
            examples = [without(record, logged.left_out) for record in asked]
        spec = ModelSpec(name=logged.name, signature_name=signature)
        spec.version.value = logged.version
        answers = {key: np.asarray(x) for key, x in outputs.items()}
        return logs_of(spec, examples, answers, time.time())

    def _prediction(self, row: Row, answer: dict[str, Any]) -> Prediction:
        values = row.values() if self._expected else {}
        missing = [x for x in self._expected if is_missing(values.get(x))]
        answer |= {"missing": missing or None, "id": row.id}
        return Prediction(row.source, row.index, **answer)

    def _column(self, name: str, values: list[Any]) -> Any:
        """Returns one feature's values; TensorFlow refuses those of another type."""
        spec, tf = self.features[name], self._tf
        if name in self._required and any(value is None for value in values):
            raise ValueError(f"{name!r} is missing")
        if spec.shape.rank == 1:
            if any(isinstance(value, bool) for value in values):
                raise ValueError(f"{name!r}, {spec.dtype.name}: a boolean")
            if spec.dtype == tf.int64:
                # 3.0 is how a data frame with missing values writes 3.
                values = [_as_int(value) for value in values]
            rows = [[] if is_missing(value) else [value] for value in values]
            values = column_of(rows, spec)
        elif spec.shape[1:] == [None]:
            rows = [[] if is_missing(value) else value for value in values]
            if not all(isinstance(row, list) for row in rows):
                raise ValueError(f"{name!r}, {spec.dtype.name}: not a list")
            values = column_of(rows, spec)
        try:
            column = tf.constant(values, spec.dtype)
            # Rows without values say nothing of their shape.
            column = tf.ensure_shape(column, spec.shape)
        except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            raise ValueError(
                f"{name!r}, {spec.dtype.name}: {_reason(error)}"
            ) from error
        tensor = tf.constant(values, tf.float64) if spec.dtype == tf.float32 else column
        if spec.dtype == tf.float32 and tf.reduce_any(
            tf.math.is_inf(column) & tf.math.is_finite(tensor)
        ):
            raise ValueError(f"{name!r} has a number beyond 32 bits")
        return column

    def _answer(self, values: list[float], label: Any = None) -> dict[str, Any]:
        if self._task == "regression":
            if self._targets:
                named = zip(self._targets, values, strict=True)
                return {"prediction": dict(named)}
            return {"prediction": values[0] if len(values) == 1 else values}
        by_class = self._by_class(values)
        if self._task == "multi_label":
            labels = [name for name, value in by_class.items() if value >= THRESHOLD]
            return {"labels": labels, "probabilities": by_class}
        label = label[0] if isinstance(label, list) else label
        return {"label": label.decode(), "probabilities": by_class}

    def _by_class(self, values: list[float]) -> dict[str, float]:
        if len(values) == 1 and len(self._classes) == 2:
            values = [1.0 - values[0], values[0]]
        if len(values) != len(self._classes):
            raise self._failure(
                f"{len(values)} probabilities for the {len(self._classes)} classes of "
                f"{CLASSES_FILE}"
            )
        return dict(zip(self._classes, values, strict=True))

    def _failure(self, reason: str) -> ServingError:
        return ServingError(
            f"the model failed during prediction: {reason}", where=self._dir
        )


def _called_by_keyword(signature: Any) -> Signature:
    return lambda inputs: signature(**inputs)


def _as_int(value: Any) -> Any:
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Groups rows that go to the same signature."""
    batch: list[Row] = []
    try:
        for row in rows:
            same_kind = not batch or type(row.payload) is type(batch[0].payload)
            if not same_kind or len(batch) == BATCH_SIZE:
                yield batch
                batch = []
            batch.append(row)
    except SluiceError:
        if batch:
            yield batch  # The rows before the bad one.
        raise
    if batch:
        yield batch


def _reason(error: Exception) -> str:
    """Returns the line with the reason in a long TensorFlow error.

    It is the first line; in a graph execution error the last before the node's name.
    """
    text = _NOISE.sub("", str(getattr(error, "message", error)))
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    lines = lines or [type(error).__name__]
    return lines[-1 if lines[0] == "Graph execution error:" else 0][:_REASON_LENGTH]
