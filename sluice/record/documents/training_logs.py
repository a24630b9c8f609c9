"""Reads the metrics of each epoch from the logs that Keras writes for TensorBoard."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError

from sluice.errors import WorkspaceError
from sluice.records import tfrecord

# Keras names the folders of one training and the tags of one epoch like this
# (callbacks.TensorBoard); other tags count batches.
_PREFIXES = {"train": "", "validation": "val_"}
_TAG_PREFIX = "epoch_"


def training_logs(directory: Path) -> dict[str, dict[int, float | None]]:
    """Returns each metric's value by epoch, from 0.

    Metrics have the names of Keras's history: those of the validation data begin with
    ``val_``. Where there are no logs of epochs, or those of several trainings, nothing
    is returned.

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
        try:
            event = event_pb2.Event.FromString(record)
        except DecodeError as error:
            raise WorkspaceError(
                "This training log cannot be read.",
                where=path,
                expected="TensorBoard's events",
                actual=str(error),
                hint="Run the node that wrote it again: sluice run NAME --force NODE",
            ) from error
        for item in event.summary.value:
            if item.tag.startswith(_TAG_PREFIX) and item.HasField("tensor"):
                array = tensor_util.make_ndarray(item.tensor)
                if array.size == 1 and array.dtype.kind == "f":
                    name = item.tag.removeprefix(_TAG_PREFIX)
                    scalars.append((event.step, name, float(array.item())))
    return scalars
