"""Beam's portable runner, for an engine such as Flink, with workers of our own pool.

A job server takes the pipelines, and hands them to the engine. Wherever the engine runs
a part, it asks the worker pool of that machine (``sluice.worker_pool``) for a process.
What the pool is told with each request decides whether it can do the work: the versions
of the packages, and paths of project, data and workspace.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import time
import uuid
from contextlib import suppress
from typing import Any

import grpc
import requests
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PortableOptions,
    SetupOptions,
)
from apache_beam.portability.api import beam_fn_api_pb2 as fn_api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as fn_api_grpc
from apache_beam.runners.portability import portable_runner
from apache_beam.transforms.environments import Environment, ExternalEnvironment

from sluice import progress
from sluice.code_fingerprint import PACKAGES
from sluice.errors import NodeError, RemoteError
from sluice.forked_calls import FEWER_WORKERS
from sluice.node_environment import node_environment
from sluice.version import __version__
from sluice.workspace import installed_version

_CONNECT_S = 5.0
_CANCEL_S = 20.0
# Flink's exceptions that do not say what to do.
_HINTS = {
    "TimeoutException": "it had no free slots: set beam.workers to fewer, or cancel "
    "other jobs",
    "ConnectException": "see whether the job manager is there, and on each machine of "
    "the engine its worker pool: sluice beam-workers",
    "CANCELLED: client cancelled": "a worker has died: see what sluice beam-workers "
    f"has printed; {FEWER_WORKERS}",
    "no longer reachable": "sluice resume, when there are task managers again",
}


class EngineRunner(portable_runner.PortableRunner):
    """Beam's portable runner; it waits for the job, and cancels it when interrupted."""

    def default_environment(self, options: Any) -> Environment:
        told = request_parameters(options.view_as(SetupOptions).pickle_library)
        pool = options.view_as(PortableOptions).environment_config
        return ExternalEnvironment(pool, params=told)

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        endpoint = options.view_as(PortableOptions).job_endpoint
        require_job_server(endpoint)
        _note(f"Beam runs on the engine of the job server {endpoint}")
        name = f"sluice-{uuid.uuid4()}"
        options.view_as(GoogleCloudOptions).job_name = name
        master = options.view_as(FlinkRunnerOptions).flink_master
        result = None
        try:
            result = super().run_pipeline(pipeline, options)
            result.wait_until_finish()
        except RuntimeError as error:
            raise explained(str(error)) from error
        except BaseException as error:
            if result is not None:
                with suppress(grpc.RpcError):
                    result.cancel()
            if ":" in master:
                cancel(master, name)
            if isinstance(error, grpc.RpcError):
                what = f"Beam's job server has gone: {error.details()}"
                hint = "start it again, then sluice resume"
                raise RemoteError(what, hint=hint) from error
            raise
        return result


@functools.cache
def _note(text: str) -> None:
    """Says once what all pipelines of a node have in common."""
    progress.note(text)


def cancel(master: str, name: str) -> None:
    """Cancels a job of Flink, which Beam's job server would let run on.

    It may be on its way to Flink still.
    """
    jobs = f"http://{master}/jobs"
    deadline = time.monotonic() + _CANCEL_S
    with suppress(requests.RequestException):
        while time.monotonic() < deadline:
            found = requests.get(f"{jobs}/overview", timeout=_CONNECT_S).json()
            ids = [job["jid"] for job in found["jobs"] if job["name"] == name]
            if ids:
                requests.patch(f"{jobs}/{ids[0]}", timeout=_CONNECT_S)
                return
            time.sleep(1)


def explained(message: str) -> Exception:
    """Returns the exception for a job that has failed.

    Args:
      message: Beam's; what a worker raised is a Python traceback in it.
    """
    if "Traceback (most recent call last)" in message:
        raised = re.findall(r"^\w[\w.]*: .*|^\w[\w.]*$", message, re.MULTILINE)
        return RuntimeError(raised[-1] if raised else message)
    reason = message.partition(": ")[2] or message
    hints = (hint for sign, hint in _HINTS.items() if sign in reason)
    return NodeError(f"the engine says: {reason}", hint=next(hints, None))


def request_parameters(pickle_library: str) -> dict[str, str]:
    """Returns what this process tells the pool with each request for a worker."""
    return {
        "versions": json.dumps(versions()),
        "project": os.getcwd(),
        "shared_paths": node_environment().shared_paths or "",
        "python_path": os.environ.get("PYTHONPATH", ""),
        "pickle_library": pickle_library,
    }


def versions() -> dict[str, str | None]:
    """Returns the versions that the workers and a node must have in common."""
    packages = {name: installed_version(name) for name in ("apache-beam", *PACKAGES)}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"sluice": __version__, "python": python, **packages}


def require_job_server(endpoint: str) -> None:
    """Raises RemoteError if no job server answers there."""
    with grpc.insecure_channel(endpoint) as channel:
        _require(
            channel,
            f"Beam's job server does not answer at {endpoint}",
            "start it: setup/flink.sh start job-server",
        )


def require_flink(master: str) -> None:
    """Raises RemoteError if no job manager answers there, or it has no slots."""
    what = f"Flink's job manager does not answer at {master}"
    try:
        answer = requests.get(f"http://{master}/overview", timeout=_CONNECT_S)
        answer.raise_for_status()
        slots = answer.json()["slots-total"]
    except (requests.RequestException, ValueError, KeyError) as error:
        raise RemoteError(what, hint=f"curl http://{master}/overview") from error
    if not slots:
        raise RemoteError(f"Flink at {master} has no task manager")


def require_worker_pool(endpoint: str) -> None:
    """Checks that a pool answers there, and would do the work of this process.

    Raises:
      RemoteError: it does not.
    """
    hint = "start it in the project: sluice beam-workers"
    with grpc.insecure_channel(endpoint) as channel:
        _require(channel, f"no worker pool answers at {endpoint}", hint)
        # Without an address it starts none.
        request = fn_api.StartWorkerRequest(params=request_parameters(""))
        answer = fn_api_grpc.BeamFnExternalWorkerPoolStub(channel).StartWorker(
            request, timeout=_CONNECT_S
        )
    if answer.error:
        raise RemoteError(answer.error, where=f"worker pool {endpoint}")


def _require(channel: Any, what: str, hint: str) -> None:
    try:
        grpc.channel_ready_future(channel).result(_CONNECT_S)
    except grpc.FutureTimeoutError as error:
        raise RemoteError(what, hint=hint) from error
