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

import numpy as np

from serving.server.servable import Signature, Tensors
from serving.server.status import Code, StatusError

Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class BatchSettings:
    """How requests are joined.

    Attributes:
      max_rows: of a batch; 1 computes every request on its own. A request with more
        rows is a batch of its own.
      delay_s: how long a request waits for others while the model is idle.
      max_waiting: requests beyond this number are refused.
      threads: batches that are computed at the same time.
    """

    max_rows: int = 64
    delay_s: float = 0.0
    max_waiting: int = 1000
    threads: int = 1


@dataclass(eq=False)
class _Request:
    signature: Signature
    tensors: Tensors
    rows: int
    key: Hashable
    future: asyncio.Future[Outputs]


class Batcher:
    """Computes the requests of one loaded version; belongs to one event loop."""

    def __init__(
        self,
        settings: BatchSettings,
        on_batch: Callable[[int, int], None],
        on_end: Callable[[], None],
    ) -> None:
        """Starts no thread yet.

        Args:
          settings: how requests are joined.
          on_batch: called with the numbers of requests and rows of each batch.
          on_end: called at the end of each batch.
        """
        self._settings = settings
        self._on_batch, self._on_end = on_batch, on_end
        self._waiting: deque[_Request] = deque()
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None
        self._executor = ThreadPoolExecutor(settings.threads, "batch")

    @property
    def is_idle(self) -> bool:
        """Whether no batch is being computed."""
        return not self._running

    def submit(self, signature: Signature, tensors: Tensors) -> asyncio.Future[Outputs]:
        """Returns the future outputs of checked inputs.

        Raises:
          StatusError: UNAVAILABLE, too many requests wait.
        """
        if len(self._waiting) >= self._settings.max_waiting:
            raise StatusError(Code.UNAVAILABLE, "too many requests are waiting")
        loop = asyncio.get_running_loop()
        rows, key = _rows_and_key(signature, tensors)
        request = _Request(signature, tensors, rows, key, loop.create_future())
        self._waiting.append(request)
        if not self._settings.delay_s or self._is_full():
            self._start()
        elif self._timer is None:
            self._timer = loop.call_later(self._settings.delay_s, self._on_delay)
        return request.future

    def close(self) -> None:
        """Lets the threads end; no request may be under way."""
        self._executor.shutdown(wait=False)

    def _is_full(self) -> bool:
        limit = self._settings.max_rows
        return sum(request.rows for request in self._waiting) >= limit

    def _on_delay(self) -> None:
        self._timer = None
        self._start()

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        while self._running < self._settings.threads and (batch := self._take()):
            self._running += 1
            self._on_batch(len(batch), sum(request.rows for request in batch))
            computed = loop.run_in_executor(self._executor, _compute, batch)
            computed.add_done_callback(partial(self._end, batch))

    def _take(self) -> list[_Request]:
        """Removes the oldest request, and those that can be joined with it."""
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
        return batch

    def _end(
        self,
        batch: list[_Request],
        computed: asyncio.Future[list[Outputs | StatusError]],
    ) -> None:
        self._running -= 1
        for request, result in zip(batch, computed.result(), strict=True):
            if request.future.done():
                continue
            if isinstance(result, StatusError):
                request.future.set_exception(result)
            else:
                request.future.set_result(result)
        if self._timer is None:
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
    if len(batch) > 1 and (outputs := _compute_joined(batch)):
        return outputs
    results: list[Outputs | StatusError] = []
    for request in batch:
        try:
            results.append(request.signature.run(request.tensors))
        except Exception as error:
            results.append(StatusError.of(error))
    return results


def _compute_joined(batch: list[_Request]) -> list[Outputs | StatusError] | None:
    """Returns the outputs of each request; None if they have to be computed apart."""
    signature = batch[0].signature
    try:
        outputs = signature.run(
            {
                name: np.concatenate([request.tensors[name] for request in batch])
                for name in signature.inputs
            }
        )
    except Exception:
        return None
    ends = np.cumsum([request.rows for request in batch])
    if any(value.shape[:1] != (ends[-1],) for value in outputs.values()):
        return None
    parts = {name: np.split(value, ends[:-1]) for name, value in outputs.items()}
    return [
        {name: values[index] for name, values in parts.items()}
        for index in range(len(batch))
    ]
