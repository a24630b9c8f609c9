"""Pool of Beam workers for an engine: each is forked from a process that has imported.

Beam's own pool starts each worker from scratch, which imports TFX for many seconds, and
an engine asks for several per pipeline. Here a process without threads imports all of
it once, and forks; a child of it listens, since gRPC's threads do not survive a fork.
Who can reach its port can run code here, as in Beam's own pool.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2 as fn_api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as fn_api_grpc

from sluice.beam_worker import begin_worker, run_worker
from sluice.engine_runner import versions
from sluice.errors import UsageError
from sluice.patches.beam import check_records_fast, remember_signatures
from sluice.process_tree import die_with, name_process


def serve(address: str, modules: Iterable[str], on_ready: Callable[[], None]) -> None:
    """Listens at an address, and forks a worker for each request, until it is stopped.

    Args:
      address: ``HOST:PORT``.
      modules: what a worker needs; imported before the first request.
      on_ready: called when it listens.

    Raises:
      UsageError: the address cannot be used.
    """
    for module in modules:
        importlib.import_module(module)
    check_records_fast()
    remember_signatures()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    server = context.Process(target=_listen, args=(address, theirs), daemon=True)
    server.start()
    theirs.close()
    if not ours.recv():
        raise UsageError(f"{address} cannot be listened at: is another pool there?")
    on_ready()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # No worker becomes a zombie.
    with suppress(EOFError):
        while True:
            request, pool = ours.recv(), os.getpid()
            if os.fork() == 0:
                _work(pool, *request)
            ours.send(True)


def _work(pool: int, address: str, worker_id: str, told: Mapping[str, str]) -> None:
    """Does the work of one Beam worker, then ends the process."""
    status = 1
    try:
        begin_worker(pool)
        os.chdir(told["project"])
        sys.path[:0] = [told["project"]]
        sys.path += [x for x in told["python_path"].split(os.pathsep) if x]
        run_worker(address, worker_id, told["pickle_library"])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _listen(address: str, pipe: Connection) -> None:
    die_with(os.getppid())
    name_process("sluice-pool")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # It ends with its parent.
    # Otherwise a second pool could have the same port.
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
    fn_api_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(_Pool(pipe), server)
    try:
        server.add_insecure_port(address)
        server.start()
    except RuntimeError:
        pipe.send(False)
        return
    pipe.send(True)
    server.wait_for_termination()


class _Pool(fn_api_grpc.BeamFnExternalWorkerPoolServicer):
    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._lock = pipe, threading.Lock()

    def StartWorker(self, request: Any, _: Any) -> Any:
        told = dict(request.params)
        error = refusal(told)
        if not error and request.control_endpoint.url:
            with self._lock:
                asked = request.control_endpoint.url, request.worker_id, told
                self._pipe.send(asked)
                # An engine waits without end for a worker that it was promised; where
                # none could be forked, this process ends, too.
                self._pipe.recv()
        return fn_api.StartWorkerResponse(error=error)

    def StopWorker(self, _: Any, __: Any) -> Any:
        return fn_api.StopWorkerResponse()  # They end when the engine hangs up.


def refusal(told: Mapping[str, str]) -> str:
    """Returns why this machine cannot do the work of a node; "" if it can.

    Args:
      told: see ``engine_runner.request_parameters``.
    """
    here, there = versions(), json.loads(told.get("versions", "{}"))
    others = [
        f"{name} {version} (the node has {there.get(name)})"
        for name, version in here.items()
        if there.get(name) != version
    ]
    if others:
        return f"the worker pool has other versions: {', '.join(others)}"
    for path in (told["project"], *told["shared_paths"].splitlines()):
        if not Path(path).exists():
            return (
                f"the worker pool's machine has no {path}: project, data and workspace "
                "are to be on storage that all machines share"
            )
    return ""
