"""Beam's in-process runner, on several cores if there are forked workers.

Beam starts the processes of its own multi-process mode from scratch, and each imports
TFX for many seconds. Here they are forked from a node's process, which has imported it,
before TensorFlow or a thread has started; then they wait until a pipeline needs them.
They speak with the runner over sockets in a folder that other users cannot enter.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import DirectOptions, SetupOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers
from apache_beam.transforms.environments import Environment

from sluice import progress
from sluice.beam_worker import begin_worker, run_worker
from sluice.errors import NodeError
from sluice.forked_calls import FEWER_WORKERS
from sluice.patches.beam import fail_requests, sockets_in
from sluice.process_tree import describe_end

_URN = "sluice:forked_worker"
_POLL_S = 0.2


@dataclass
class _Worker:
    process: Any
    pipe: Connection


_idle: list[_Worker] = []
_lost: list[str] = []
_why = ""


def fork_workers(count: int, why: str) -> None:
    """Forks processes that wait for the pipelines of this process, and end with it.

    The caller has no threads, and has not used TensorFlow. ``why`` is told when they
    are first used.
    """
    global _why
    _why = why
    context = multiprocessing.get_context("fork")
    for _ in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        _idle.append(_Worker(process, ours))


def _work(pipe: Connection) -> None:
    begin_worker(os.getppid())
    with suppress(EOFError):
        while True:
            address, worker_id, library = pipe.recv()
            known = worker_handlers.FNAPI_RUNNER_CAPABILITIES
            run_worker(address, worker_id, library, known)
            pipe.send(None)
    os._exit(0)


class LocalRunner(fn_runner.FnApiRunner):
    """Beam's in-process runner, whose work the forked workers do, if there are any."""

    pickle_library = pickler.DEFAULT_PICKLE_LIB

    def __init__(self) -> None:
        super().__init__(_Forked() if _idle else None)

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        if not _idle:
            return super().run_pipeline(pipeline, options)
        LocalRunner.pickle_library = options.view_as(SetupOptions).pickle_library
        direct = options.view_as(DirectOptions)
        direct.direct_num_workers = len(_idle)
        direct.direct_running_mode = "forked"  # Beam warns of several in one process.
        self._say_why()
        folder = tempfile.mkdtemp(prefix="beam-")
        try:
            with sockets_in(folder):
                return super().run_pipeline(pipeline, options)
        except Exception as error:
            if _lost:
                raise NodeError(_lost[0], hint=FEWER_WORKERS) from error
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _say_why(self) -> None:
        global _why
        if _why:
            progress.note(f"Beam runs in {len(_idle)} processes, {_why}")
        _why = ""


@Environment.register_urn(_URN, bytes)
class _Forked(Environment):
    """Beam's description of the workers."""

    def to_runner_api_parameter(self, context: Any) -> tuple[str, bytes]:
        return _URN, b""

    @staticmethod
    def from_runner_api_parameter(*_: Any) -> _Forked:
        return _Forked()


@worker_handlers.WorkerHandler.register_environment(_URN, bytes)
class _ForkedWorkerHandler(worker_handlers.GrpcWorkerHandler):
    """What the runner holds of a worker while a pipeline runs."""

    def __init__(self, _: bytes, *given: Any) -> None:
        super().__init__(*given)

    def port_from_worker(self, port: Any) -> str:
        return str(port)  # The path of a socket.

    def start_worker(self) -> None:
        self._worker = _idle.pop()
        self._is_closed = threading.Event()
        library = LocalRunner.pickle_library
        self._worker.pipe.send((self.control_address, self.worker_id, library))
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def stop_worker(self) -> None:
        self._is_closed.set()
        self._watching.join()

    def _watch(self) -> None:
        """Waits until the worker has finished its work for this pipeline, or died."""
        process, pipe = self._worker.process, self._worker.pipe
        wait([process.sentinel, pipe])
        with suppress(EOFError):
            pipe.recv()
            _idle.append(self._worker)
            return
        process.join()
        _lost.append(f"a worker process {describe_end(process.exitcode)}")
        while not self._is_closed.wait(_POLL_S):
            fail_requests(self.control_conn, _lost[0])
