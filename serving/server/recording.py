"""Records a sample of the answered requests, by day, for the data gate and retraining.

Each record is a ``PredictionLog`` with one row and its answer. The files are
``{YYYY}-{MM}-{DD}/*.tfrecord.gz``, of days in UTC, each written whole every five
minutes, after 4 MB, and when the server ends. A server that is killed loses what it has
not written yet.
"""

from __future__ import annotations

import logging
import queue
import random
import secrets
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from tensorflow_serving.apis import model_pb2

from serving import prediction_logs
from serving.prediction_logs import examples_of
from serving.server import metrics
from serving.server.core import Answered, fill_spec
from serving.signatures import EXAMPLES, VALUES, without
from sluice.tfrecords import tfrecord

_WAITING, _PAUSE_S = 1000, 0.05
_FILE_BYTES, _FILE_S = 4 << 20, 300.0
_log = logging.getLogger("sluice")


class Recorder:
    """Writes requests in a thread of its own, as many as it can keep up with."""

    def __init__(
        self, folder: Path, fraction: float, left_out: Collection[str], max_bytes: int
    ) -> None:
        """Begins to record.

        Args:
          folder: gets a folder for each day.
          fraction: of the requests, drawn at random.
          left_out: features that are not recorded.
          max_bytes: of all files; the oldest are deleted.
        """
        self._folder, self._fraction = folder, fraction
        self._left_out, self._max_bytes = left_out, max_bytes
        self._queue: queue.Queue[tuple[Answered, float] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, answered: Answered) -> None:
        """Takes an answered request; returns at once."""
        if random.random() >= self._fraction:
            return
        try:
            self._queue.put_nowait((answered, time.time()))
        except queue.Full:
            metrics.UNRECORDED.labels(answered.version.name).inc()

    def close(self) -> None:
        """Writes what it has taken."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        logs: list[bytes] = []
        last_s, size, since = 0.0, 0, time.monotonic()
        while True:
            taken, is_end = None, False
            try:
                taken = self._queue.get_nowait()
                is_end = taken is None
            except queue.Empty:
                # Woken for each request, the thread would take turns with the server's.
                time.sleep(_PAUSE_S)
            is_due = size >= _FILE_BYTES or time.monotonic() - since >= _FILE_S
            is_next_day = taken and _day_of(taken[1]) != _day_of(last_s)
            if logs and (is_end or is_due or is_next_day):
                self._write(last_s, logs)
                logs, size = [], 0
            if is_end:
                return
            if taken:
                if not logs:
                    since = time.monotonic()
                last_s = taken[1]
                new = self._logs_of(*taken)
                logs += new
                size += sum(map(len, new))

    def _logs_of(self, answered: Answered, at_s: float) -> list[bytes]:
        try:
            return [*logs_of(answered, at_s, self._left_out)]
        except Exception:  # Of a model that is not ours: recording never ends.
            _log.exception("a request was not recorded")
            return []

    def _write(self, last_s: float, logs: list[bytes]) -> None:
        """Writes a file; a full disk costs its requests, and ends nothing.

        Its name begins with the time of its last request: the newest are found by it.
        """
        last = datetime.fromtimestamp(last_s, timezone.utc)
        folder = self._folder / _day_of(last_s)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{last:%H%M%S}-{secrets.token_hex(4)}.tfrecord.gz"
            tfrecord.write(folder / name, logs)
            _keep_below(self._folder, self._max_bytes)
        except OSError as error:
            _log.error(f"{len(logs):,} requests were not recorded: {error}")


def _day_of(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, timezone.utc):%Y-%m-%d}"


def _keep_below(folder: Path, max_bytes: int) -> None:
    """Deletes the oldest files above a size, and folders that are empty then."""
    sizes = {}
    for path in folder.glob("*/*.tfrecord.gz"):
        with suppress(FileNotFoundError):  # Another server has deleted it.
            sizes[path] = path.stat().st_size
    above = sum(sizes.values()) - max_bytes
    for path in sorted(sizes):
        if above <= 0:
            return
        path.unlink(missing_ok=True)
        above -= sizes[path]
        with suppress(OSError):
            path.parent.rmdir()


def logs_of(
    answered: Answered, at_s: float, left_out: Collection[str]
) -> Iterator[bytes]:
    """Yields a serialized ``PredictionLog`` for each row of a request.

    None of a signature that takes neither examples nor the values of features.

    Args:
      answered: the request.
      at_s: when, in seconds since 1970.
      left_out: features to leave out.
    """
    version, name = answered.version, answered.signature.name
    if answered.method != "predict" or name == EXAMPLES:
        (column,) = answered.inputs.values()
        examples = [without(data, left_out) for data in column]
    elif name == VALUES:
        features = version.servable.facts["classes.json"]["features"]
        examples = [*examples_of(answered.inputs, features, left_out)]
    else:
        return
    fill_spec(spec := model_pb2.ModelSpec(), version, name)
    yield from prediction_logs.logs_of(spec, examples, answered.outputs, at_s)
