"""Predicts the classes of serialized tf.Examples with an evaluated SavedModel.

The model is loaded into a session on the CPU: that takes 0.2 to 0.4 s where
``tf.saved_model.load`` takes 0.2 to 0.7 s (digits, taxi), and a GPU's memory is left
alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sluice.record.documents.example_records import first_value
from sluice.tfrecords import tf_example_pb2

_SERVING = "serving_default"
_CLASSES_FILE = Path("assets.extra", "classes.json")


class Predictions(NamedTuple):
    """Predictions for a batch.

    Attributes:
      classes: names of the classes.
      labels: number of each row's class; None where the label is missing.
      probabilities: of each row, by class.
    """

    classes: list[str]
    labels: list[int | None]
    probabilities: list[list[float]]


class Classifier:
    """A loaded model; see ``load``.

    Attributes:
      signature: name of the signature that predicts.
    """

    def __init__(
        self, session: Any, signatures: Mapping[str, Any], spec: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._label = spec["labelKey"]
        self.signature = spec.get("signatureName") or _SERVING
        self._predict = signatures[self.signature]
        key = spec.get("predictionKey")
        outputs = {
            name: item
            for name, item in self._predict.outputs.items()
            if name == key or (not key and item.dtype == 1)  # DT_FLOAT
        }
        self._outputs = [item.name for item in outputs.values()]
        names = spec.get("preprocessingFunctionNames", ())
        functions = (signatures[name] for name in names if name in signatures)
        # The label as the model was trained on it, or None for that of the record.
        self._transform = next((x for x in functions if self._label in x.outputs), None)
        self._used = [self._predict, *([self._transform] if self._transform else [])]
        self._classes: list[str] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it takes serialized tf.Examples and has one prediction."""
        takes_strings = all(
            [item.dtype for item in signature.inputs.values()] == [7]  # DT_STRING
            for signature in self._used
        )
        return takes_strings and len(self._outputs) == 1

    @classmethod
    @contextmanager
    def load(
        cls, model_dir: Path, spec: Mapping[str, Any]
    ) -> Iterator[Classifier | None]:
        """Loads a model; None if its signatures are not those of a classifier.

        Args:
          model_dir: of the SavedModel.
          spec: TFMA's ``ModelSpec``, in JSON.
        """
        import tensorflow as tf

        v1 = tf.compat.v1
        config = v1.ConfigProto(device_count={"GPU": 0})
        # Optimizing the graph takes longer than a few batches gain.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        if not tf.saved_model.contains_saved_model(str(model_dir)):
            yield None
            return
        with tf.Graph().as_default(), v1.Session(config=config) as session:
            tags = [tf.saved_model.SERVING]
            loaded = v1.saved_model.load(session, tags, str(model_dir))
            signatures = loaded.signature_def
            if (spec.get("signatureName") or _SERVING) not in signatures:
                yield None
                return
            found = cls(session, signatures, spec)
            found._classes = class_names(model_dir)
            yield found if found.is_usable else None

    def predict(self, examples: Sequence[bytes]) -> Predictions | None:
        """Returns the predictions; None if they or the labels are not of classes."""
        import numpy as np

        fetched = {"scores": self._outputs[0]}
        if self._transform is not None:
            fetched["label"] = self._transform.outputs[self._label].name
        fed = {
            item.name: list(examples)
            for signature in self._used
            for item in signature.inputs.values()
        }
        found = self._session.run(fetched, fed)
        scores = _probabilities(found["scores"].reshape(len(examples), -1))
        if scores is None:
            return None
        size = scores.shape[1]
        names = self._classes
        if names is None or len(names) != size:
            names = [str(number) for number in range(size)]
        if "label" in found:
            # -1 is a label that is missing or unknown: ``pipeline.training.export``.
            values = np.reshape(found["label"], (len(examples), -1))[:, 0].tolist()
            values = [None if value == -1 else value for value in values]
        else:
            values = [self._label_of(data) for data in examples]
        labels = [None if value is None else _number(value, names) for value in values]
        if any(label is not None and not 0 <= label < size for label in labels):
            return None
        return Predictions(names, labels, scores.tolist())

    def _label_of(self, data: bytes) -> Any:
        message: Any = tf_example_pb2.Example
        return first_value(message.FromString(data).features.feature.get(self._label))


def _probabilities(scores: Any) -> Any:
    """Returns probabilities by class; None if the scores are not of classes."""
    import numpy as np

    scores = scores.astype(float)
    if scores.shape[1] == 1:
        is_probability = ((scores >= 0) & (scores <= 1)).all()
        return np.concatenate([1 - scores, scores], axis=1) if is_probability else None
    if ((scores >= 0) & (scores <= 1)).all():
        return scores
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def _number(value: Any, names: list[str]) -> int:
    """Returns the number of a class; -1 if it is not one."""
    if isinstance(value, bytes):
        text = value.decode("utf-8", errors="replace")
        return names.index(text) if text in names else -1
    return int(value) if value == int(value) else -1


def class_names(model_dir: Path) -> list[str] | None:
    """Returns the names that our trainer exports; None of another's model."""
    try:
        found = json.loads((model_dir / _CLASSES_FILE).read_bytes())["classes"]
        return [str(name) for name in found]
    except (OSError, ValueError, KeyError, TypeError):
        return None
