"""Adaptive batching: requests that wait while a batch is computed are the next one.

A request that finds the model idle is computed at once, so that a single client waits
for nobody; ``delay_s`` makes it wait for others. Requests are joined along the first
axis if they are for one signature and of the same types and shapes beyond it. If a
batch fails, or its outputs do not have a row for each example, its requests are
computed one by one: a bad request fails alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from serving.server.servable import Signature, Tensors
from serving.server.status import Code, StatusError

Outputs = dict[str, np.ndarray]
_MAX_WAITING = 1000


@dataclass(frozen=True)
class BatchSettings:
    """How requests are joined.

    Attributes:
      max_rows: of a batch; 1 computes every request on its own. A request with more
        rows is a batch of its own.
      delay_s: how long a request waits for others while the model is idle.
    """

    max_rows: int = 64
    delay_s: float = 0.0


@dataclass(eq=False)
class _Request:
    signature: Signature
    tensors: Tensors
    rows: int
    key: Hashable
    future: asyncio.Future[Outputs]


class Batcher:
    """Computes the requests of one loaded version; belongs to one event loop.

    Attributes:
      running: the number of batches that are being computed.
    """

    def __init__(
        self,
        settings: BatchSettings,
        on_batch: Callable[[int], None],
        on_end: Callable[[], None],
    ) -> None:
        """Starts no thread yet.

        Args:
          settings: how requests are joined.
          on_batch: called with the number of rows of each batch.
          on_end: called at the end of each batch.
        """
        self.running = 0
        self._settings, self._on_batch, self._on_end = settings, on_batch, on_end
        self._waiting: deque[_Request] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._executor = ThreadPoolExecutor(1, "batch")

    async def compute(self, signature: Signature, tensors: Tensors) -> Outputs:
        """Returns the outputs for checked inputs.

        Raises:
          StatusError: the model fails; UNAVAILABLE, too many requests wait.
        """
        if len(self._waiting) >= _MAX_WAITING:
            raise StatusError(Code.UNAVAILABLE, "too many requests are waiting")
        loop = asyncio.get_running_loop()
        rows, key = _rows_and_key(signature, tensors)
        request = _Request(signature, tensors, rows, key, loop.create_future())
        self._waiting.append(request)
        rows = sum(request.rows for request in self._waiting)
        if not self._settings.delay_s or rows >= self._settings.max_rows:
            self._start()
        elif not self._timer:
            self._timer = loop.call_later(self._settings.delay_s, self._start)
        return await request.future

    def _start(self) -> None:
        """Starts a batch with the oldest request, and those that can be joined."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self.running:
            return
        batch: list[_Request] = []
        kept: deque[_Request] = deque()
        rows = 0
        for request in self._waiting:
            if request.future.done():  # Its client has gone, or its time is up.
                continue
            fits = rows + request.rows <= self._settings.max_rows
            if not batch or (fits and request.key == batch[0].key):
                batch.append(request)
                rows += request.rows
            else:
                kept.append(request)
        self._waiting = kept
        if batch:
            self.running += 1
            self._on_batch(rows)
            loop = asyncio.get_running_loop()
            computed = loop.run_in_executor(self._executor, _compute, batch)
            computed.add_done_callback(partial(self._end, batch))

    def _end(self, batch: list[_Request], computed: asyncio.Future[list[Any]]) -> None:
        self.running -= 1
        for request, result in zip(batch, computed.result(), strict=True):
            if request.future.done():
                continue
            if isinstance(result, StatusError):
                request.future.set_exception(result)
            else:
                request.future.set_result(result)
        self._start()
        self._on_end()


def _rows_and_key(signature: Signature, tensors: Tensors) -> tuple[int, Hashable]:
    """Returns the number of rows, and what is equal for requests that can be joined."""
    values = tensors.values()
    sizes = {value.shape[0] if value.ndim else 0 for value in values}
    rows = max(sizes, default=1)
    if not signature.is_batchable or len(sizes) != 1 or not rows:
        return rows, object()
    return rows, (signature.name, *(value.shape[1:] for value in values))


def _compute(batch: list[_Request]) -> list[Outputs | StatusError]:
    """Runs in a thread; never raises, so that every request is answered."""
    if len(batch) > 1 and (joined := _compute_joined(batch)):
        return joined
    results: list[Outputs | StatusError] = []
    for request in batch:
        try:
            results.append(request.signature.run(request.tensors))
        except Exception as error:
            results.append(StatusError.of(error))
    return results


def _compute_joined(batch: list[_Request]) -> list[Outputs | StatusError] | None:
    """Returns the outputs of each request; None if they have to be computed apart."""
    tensors = {
        name: np.concatenate([request.tensors[name] for request in batch])
        for name in batch[0].tensors
    }
    *starts, rows = np.cumsum([request.rows for request in batch])
    try:
        outputs = batch[0].signature.run(tensors)
    except StatusError:
        return None
    if any(value.shape[:1] != (rows,) for value in outputs.values()):
        return None
    parts = (np.split(value, starts) for value in outputs.values())
    return [dict(zip(outputs, row, strict=True)) for row in zip(*parts, strict=True)]
