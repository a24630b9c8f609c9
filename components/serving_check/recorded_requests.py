"""Reads the requests that a server has recorded, the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from components.serving_check.in_process import rows_of
from components.tfrecord_gen.prediction_logs import examples_of
from sluice.errors import SluiceError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse


class RecordedRequests:
    """The requests below a folder, and what can be said of those that were read.

    Attributes:
      files: the newest first.
      features: that they have.
    """

    def __init__(self, folder: Path, since: str = "") -> None:
        """Finds the files, of a day in UTC and later, such as ``2026-11-30``."""
        found = sorted(folder.glob("*/*.tfrecord.gz"), reverse=True)
        self.files = [path for path in found if path.parent.name >= since]
        self.features: set[str] = set()
        self._days: list[str] = []
        self._unread, self._is_all = 0, False

    def read(self) -> Iterator[tuple[str, bytes]]:
        """Yields the place and the tf.Example of each, the newest first."""
        for path, number, log in self._logs():
            day = path.parent.name
            try:
                examples = examples_of(log)
                for data in examples:
                    self.features |= {*parse(data).features.feature}
            except ValueError:
                self._unread += 1
                continue
            for data in examples:
                self._days.append(day)
                yield f"{day}/{path.name}, record {number}", data
        self._is_all = True

    def answers(self, version: int) -> Iterator[dict[str, Any]]:
        """Yields what a version answered to each, by output, the newest first."""
        import tensorflow as tf
        from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

        for _, _, data in self._logs():
            log = PredictionLog.FromString(data)
            if log.log_metadata.model_spec.version.value == version:
                outputs = log.predict_log.response.outputs.items()
                yield from rows_of({key: tf.make_ndarray(x) for key, x in outputs})

    def _logs(self) -> Iterator[tuple[Path, int, bytes]]:
        """Yields the file and number of each record, the newest first."""
        for path in self.files:
            try:
                logs = [*enumerate(tfrecord.read(path), 1)]
            except SluiceError:  # Such as one that the server has deleted.
                self._unread += 1
                continue
            yield from ((path, *x) for x in reversed(logs))

    def describe(self, asked: int, answered: int) -> str:
        """Returns how many were asked, and of which days."""
        which = "all" if self._is_all else "the newest"
        text = f"{which} {asked:,} recorded requests"
        if asked:
            text += f", of {' to '.join(sorted({self._days[0], self._days[-1]}))}"
        if asked > answered:
            text += f"; {asked - answered:,} of them the served version does not answer"
        if self._unread:
            text += f"; {self._unread:,} files or records cannot be read"
        return text
