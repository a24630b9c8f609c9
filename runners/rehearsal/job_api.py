"""Answers an exit handler that asks Vertex AI for its job.

The service tells an exit handler the job's name only; what its tasks did is read from
the service's API.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from runners.cloud.service import PIPELINE_LABEL, RUN_LABEL
from runners.rehearsal.http_server import (
    Request,
    Response,
    Server,
    error_response,
    json_response,
)
from runners.rehearsal.invocation import Job
from sluice.record.events import Artifact, NodeFinished
from sluice.record.journal import Journal

_ADDRESS = "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"
_STATES = {"ran": "SUCCEEDED", "cached": "SKIPPED", "skipped": "NOT_TRIGGERED"}


@contextmanager
def answering(job: Job, run_dir: Path) -> Iterator[dict[str, str]]:
    """Yields variables by which a process finds the job at Vertex AI's address.

    Args:
      job: all of whose tasks but the exit handler have ended.
      run_dir: of its run, with the journal.
    """
    path, spec = f"/v1/{job.resource_name}", job.spec.job
    first, *events = Journal(run_dir).events()
    ends = [event for event in events if isinstance(event, NodeFinished)]
    found = {
        "name": job.resource_name,
        "state": "PIPELINE_STATE_RUNNING",
        "createTime": first.at,
        "startTime": first.at,
        "labels": {PIPELINE_LABEL: job.spec.name, RUN_LABEL: run_dir.name.lower()},
        "pipelineSpec": spec["pipelineSpec"],
        "runtimeConfig": spec.get("runtimeConfig", {}),
        "jobDetail": {"taskDetails": [_task(end) for end in ends if _has_begun(end)]},
    }

    def respond(request: Request) -> Response:
        if request.method == "GET" and unquote(urlsplit(request.url).path) == path:
            return json_response(found)
        return error_response(404, f"{request.method} {request.url} is not emulated")

    with Server(respond) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {_ADDRESS: server.address}
        finally:
            server.shutdown()


def _has_begun(end: NodeFinished) -> bool:
    return end.state in _STATES or end.error is not None


def _task(end: NodeFinished) -> dict[str, Any]:
    ended = datetime.fromisoformat(end.at)
    error = {"code": 9, "message": end.error.message} if end.error else None
    return {
        "taskName": end.node,
        "state": _STATES.get(end.state, "FAILED"),
        "startTime": (ended - timedelta(seconds=end.duration_s)).isoformat(),
        "endTime": ended.isoformat(),
        "inputs": _artifacts(end.inputs),
        "outputs": _artifacts(end.outputs),
        **({"error": error} if error else {}),
    }


def _artifacts(by_key: Mapping[str, Iterable[Artifact]]) -> dict[str, Any]:
    return {
        key: {
            "artifacts": [
                {
                    "name": f"artifacts/{item.id}",
                    "schemaTitle": item.type,
                    "uri": item.uri,
                    "metadata": item.properties,
                }
                for item in items
            ]
        }
        for key, items in by_key.items()
    }
