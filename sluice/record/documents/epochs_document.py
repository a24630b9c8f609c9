"""Epochs document: the metrics of each epoch of a ``ModelRun`` artifact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluice.record.documents.damage import damage_explained
from sluice.record.json_number import json_number
from sluice.tfrecords import tfrecord

# Keras names the folders of one training and the tags of one epoch like this
# (callbacks.TensorBoard); other tags count batches.
_PREFIXES = {"train": "", "validation": "val_"}
_TAG_PREFIX = "epoch_"


def training_logs(directory: Path) -> dict[str, dict[int, float | None]]:
    """Returns each metric's value by epoch, from 0.

    Metrics have the names of Keras's history: those of the validation data begin with
    ``val_``. Empty without logs of epochs, or with those of several trainings.

    Raises:
      SluiceError: a log is damaged.
    """
    paths = sorted(
        path
        for path in directory.rglob("events.out.tfevents.*")
        if path.parent.name in _PREFIXES
    )
    if len({path.parent.parent for path in paths}) > 1:
        return {}
    metrics: dict[str, dict[int, float | None]] = {}
    for path in paths:
        for epoch, name, value in _scalars(path):
            name = _PREFIXES[path.parent.name] + name
            metrics.setdefault(name, {})[epoch] = value
    return metrics


def _scalars(path: Path) -> list[tuple[int, str, float]]:
    from tensorboard.compat.proto import event_pb2
    from tensorboard.util import tensor_util

    scalars = []
    for record in tfrecord.read(path):
        with damage_explained("this training log", path, "TensorBoard's events"):
            event = event_pb2.Event.FromString(record)
        for item in event.summary.value:
            if item.tag.startswith(_TAG_PREFIX) and item.HasField("tensor"):
                array = tensor_util.make_ndarray(item.tensor)
                if array.size == 1 and array.dtype.kind == "f":
                    name = item.tag.removeprefix(_TAG_PREFIX)
                    scalars.append((event.step, name, float(array.item())))
    return scalars


MAX_EPOCHS = 10_000

# pipeline.training writes them; it imports TensorFlow.
_HISTORY_FILE = "history.json"
_FACTS_FILE = "training.json"
_HISTORY = "an object of metrics, each a list with one number or null per epoch"


def epochs_document(directory: Path) -> dict[str, Any] | None:
    """Returns the metrics of each epoch, and how the model was trained.

    They come from ``history.json``, else from TensorBoard's logs. Of more than
    ``MAX_EPOCHS`` the last are kept.

    Returns:
      None if the artifact has neither, as that of a foreign trainer may.

    Raises:
      SluiceError: the history or a log is damaged.
      OSError: the artifact cannot be read.
    """
    names = {path.name for path in directory.iterdir()}
    if _HISTORY_FILE in names:
        source, history = _HISTORY_FILE, _history(directory / _HISTORY_FILE)
        metrics = {name: dict(enumerate(values)) for name, values in history.items()}
    else:
        source, metrics = "tensorboard", training_logs(directory)
    if not metrics:
        return None
    epochs = sorted({epoch for values in metrics.values() for epoch in values})
    kept = epochs[-MAX_EPOCHS:]
    return {
        "source": source,
        "epochs": [epoch + 1 for epoch in kept],
        "epochs_left_out": len(epochs) - len(kept),
        "metrics": {
            name: [_number(values.get(epoch)) for epoch in kept]
            for name, values in metrics.items()
        },
        "training": _facts(directory / _FACTS_FILE) if _FACTS_FILE in names else None,
    }


def _facts(path: Path) -> dict[str, Any]:
    with damage_explained("this training history", path, "an object of facts"):
        facts = json.loads(path.read_text("utf-8"))
        if not isinstance(facts, dict) or not isinstance(facts.get("epochs", []), list):
            raise ValueError(type(facts).__name__)
    epochs = facts.get("epochs", [])[-MAX_EPOCHS:]
    # Layers are in the model document.
    return {key: facts[key] for key in facts if key != "layers"} | {"epochs": epochs}


def _number(value: float | None) -> float | str | None:
    return None if value is None else json_number(value)


def _history(path: Path) -> dict[str, list[float | None]]:
    with damage_explained("this training history", path, _HISTORY):
        history = json.loads(path.read_text("utf-8"))
        if not isinstance(history, dict):
            raise ValueError(type(history).__name__)
        for name, values in history.items():
            if not isinstance(values, list) or not all(map(_is_number, values)):
                raise ValueError(f"{name}: {str(values)[:80]}")
        if len({len(values) for values in history.values()}) > 1:
            lengths = ", ".join(f"{name}: {len(x)}" for name, x in history.items())
            raise ValueError(f"different numbers of epochs ({lengths})")
    return history


def _is_number(value: Any) -> bool:
    return value is None or (
        isinstance(value, int | float) and not isinstance(value, bool)
    )
