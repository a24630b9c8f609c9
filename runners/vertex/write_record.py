"""Writes the record and the page of a job into its bucket, from inside the job.

It is what ``sluice status`` makes of the same job, and the documents of all artifacts
beside it, which a laptop would have to download. ``run.json`` is written last.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config.serialize import privacy_of
from runners.cloud.refresh import begin_elsewhere, fetch_log
from runners.cloud.service import JobState, Service, ServiceJob
from runners.cloud.service_run import new_events, planned_nodes
from runners.cloud.spec import read_spec
from runners.cloud.submitted_job import run_id_of
from runners.cloud.task_event import task_finished
from runners.local.write_report import write_report
from runners.vertex.client import VertexService
from sluice.clock import utc_now
from sluice.errors import RemoteError
from sluice.record.events import NodeFinished
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.secrets import redact, remember
from sluice.storage.storage import storage_for

_STATES: dict[str, JobState] = {"SUCCEEDED": "succeeded", "CANCELLED": "cancelled"}
_LAST = "run.json"


def write_record(
    final_status: Mapping[str, Any],
    stored: Mapping[str, Any],
    service: Service | None = None,
) -> str:
    """Writes the record of a job whose tasks have ended, and returns where.

    Args:
      final_status: KFP's ``PipelineTaskFinalStatus`` of all other tasks.
      stored: the config, see ``stored_config``.
      service: that runs the job; None for the one its name says.

    Raises:
      RemoteError: the service does not know the job, or does not answer.
      OSError: the bucket cannot be written.
    """
    remember(json.dumps(dict(stored)))
    name = str(final_status["pipelineJobResourceName"])
    service = service or _service_of(name)
    job = service.get(name)
    if job is None:
        raise RemoteError("the service does not know the job", where=name)
    state = _STATES.get(final_status.get("state", ""), "failed")
    error = (final_status.get("error") or {}).get("message")
    error = error and redact(error)
    job = replace(job, state=state, ended_at=utc_now("microseconds"), error=error)
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / run_id_of(job)
        run_dir.mkdir()
        target = begin_elsewhere(run_dir, stored, service, job)
        _record(run_dir, service, job)
        _copy(run_dir, target)
    return target


def _record(run_dir: Path, service: Service, job: ServiceJob) -> None:
    recorder, spec = Recorder(run_dir), read_spec(job.spec)

    def read_log(task: str) -> Sequence[str]:
        with suppress(RemoteError):
            return fetch_log(run_dir, service, job.name, task)
        return ()

    nodes = {node.id: node for node in planned_nodes(spec)}
    privacy = privacy_of(run_dir / "config.json")
    journal = Journal(run_dir).events()
    for event in new_events(run_dir, spec, journal, job, read_log):
        if isinstance(event, NodeFinished) and event.outputs:
            properties = spec.task(event.node).constants
            node = nodes[event.node]
            described = task_finished(run_dir, node, event, properties, privacy)
            event = replace(described, at=event.at)
        recorder.apply(event)
    write_report(recorder)


def _copy(run_dir: Path, target: str) -> None:
    storage = storage_for(target)
    files = [path for path in run_dir.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: (path.name == _LAST, path)):
        name = path.relative_to(run_dir).as_posix()
        storage.write_atomically(f"{target}/{name}", path.read_bytes())


def _service_of(name: str) -> Service:
    """Returns Vertex AI in the project and region of a job's name."""
    parts = name.split("/")
    if len(parts) != 6 or parts[::2] != ["projects", "locations", "pipelineJobs"]:
        raise RemoteError("this is no job of Vertex AI", where=name)
    return VertexService(parts[1], parts[3])
