"""Brings the record of a run in a service up to date: get the job, build, save.

What the service knows for a while only (the end of a failed task's log) is kept in the
run's folder.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.config.config import Config
from pipeline.config.serialize import (
    plain_config,
    read_stored_config,
    stored_config,
)
from runners.cloud.job_inputs import cloud_locations
from runners.cloud.service_run import Json, ReadLog, record_of, time_of
from runners.cloud.submitted_job import is_service_run, job_lock, job_of, save_job
from runners.cloud.vertex_client import RUN_LABEL, VertexService, service_of
from runners.engine import Observer
from sluice.clock import utc_now
from sluice.errors import ExitCode, RemoteError, SluiceError, WorkspaceError
from sluice.record.parts import DocumentRecord, PushRecord
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.secrets import redact
from sluice.storage import atomic, digest
from sluice.storage.storage import storage_for
from sluice.workspace import Workspace, private_umask

# Runs that are looked up in a service.
_LISTED = 20
# How often the service is asked about a run that is waited for.
_POLL_S = 10.0


def refresh(run_dir: Path, service: VertexService | None = None) -> RunRecord:
    """Returns the record of a run that was submitted, as it is now, and saves it.

    Args:
      run_dir: of the run.
      service: that runs it; None for the one that the run's config names.

    Raises:
      RemoteError: the service refuses or does not answer.
      WorkspaceError: the run's folder cannot be read or written.
    """
    try:
        with job_lock(run_dir):
            record = RunRecord.load(run_dir)
            if record.status == "running":
                _refresh(record, run_dir, service)
                record.save(run_dir)
            return record
    except BlockingIOError:
        # Another process submits its job, or refreshes it.
        return RunRecord.load(run_dir)


def _refresh(record: RunRecord, run_dir: Path, service: VertexService | None) -> None:
    config, name = read_stored_config(run_dir / "config.json"), job_of(run_dir)
    service = service or service_of(config)
    job = service.get(name)
    if job is not None:
        record_of(record, job, log_reader(run_dir, service, name))
    else:
        text = f"there is no job {name}: it was not taken, or is deleted"
        record.fail(text, ExitCode.REMOTE)
        record.end(reason="has no result")
    if record.status != "running":
        _add_documents(record, run_dir, record_uri_of(config, record.run_id))


def follow(run_dir: Path, config: Config, observer: Observer) -> RunRecord:
    """Refreshes the record until the run has ended, and returns it.

    Raises:
      RemoteError: the service has not answered for minutes; the run goes on there.
    """
    service = service_of(config, patient=True)
    states: dict[str, str] = {}
    while True:
        try:
            record = refresh(run_dir, service)
        except RemoteError as error:
            raise RemoteError(
                f"run {run_dir.name} goes on without being watched",
                details=str(error).splitlines(),
                hint=f"sluice status {config.name}",
            ) from error
        observer.on_begin(record)
        for node in record.nodes:
            if node.state != states.get(node.id, "not_reached"):
                observer.on_node(record, node)
            states[node.id] = node.state
        if record.status != "running":
            return record
        _sleep(_POLL_S, observer)


def fetch_log(
    run_dir: Path, service: VertexService, job: str, task: str
) -> Sequence[str]:
    """Stores the last lines of a task's log in ``logs/``, and returns them."""
    lines = [redact(line) for line in service.logs(job, task)]
    if lines:
        path = run_dir / "logs" / f"{task}.log"
        path.parent.mkdir(exist_ok=True)
        atomic.write_text(path, "\n".join(lines) + "\n")
    return lines


def open_service_runs(workspace: Workspace) -> list[Path]:
    """Returns the folders of open runs in a service, newest first."""
    found = []
    for run_id in reversed(workspace.run_ids()):
        run_dir = workspace.run_dir(run_id)
        with suppress(WorkspaceError):
            if is_service_run(run_dir) and RunRecord.load(run_dir).status == "running":
                found.append(run_dir)
    return found


def refresh_runs(workspace: Workspace) -> Iterator[str]:
    """Refreshes the records of all open runs in a service.

    Yields:
      A warning per record that is as it was; one for all if a service does not answer.
    """
    for run_dir in open_service_runs(workspace):
        try:
            refresh(run_dir)
        except RemoteError as error:
            yield f"open runs are shown as of their last refresh: {error.what}"
            return
        except SluiceError as error:
            yield f"run {run_dir.name} is shown as of its last refresh: {error.what}"


def import_runs(config: Config, workspace: Workspace) -> Iterator[str]:
    """Adds the newest runs of a pipeline's service that the workspace does not have.

    They were submitted from other machines, or by a schedule.

    Yields:
      A warning where the service or its bucket does not answer, or a run is damaged.
    """
    known = set(workspace.run_ids())
    try:
        service = service_of(config)
        listed = service.newest(config.name, _LISTED)
    except SluiceError as error:
        yield f"runs of other machines and of schedules are missing: {error.what}"
        return
    for item in listed:
        if (run_id := run_id_of(item)) not in known:
            try:
                _import_run(config, workspace, service, item["name"])
            except (SluiceError, OSError, ValueError) as error:
                yield f"run {run_id} of the service is left out: {error}"


def _import_run(
    config: Config, workspace: Workspace, service: VertexService, name: str
) -> None:
    job = service.get(name)
    if job is None:
        return
    run_id, root = run_id_of(job), str(config.root)
    uri = f"{record_uri_of(config, run_id)}/config.json"
    storage = storage_for(uri)
    # A scheduled run writes it at its end.
    written = json.loads(storage.read(uri)) if storage.exists(uri) else None
    with private_umask(config.private):
        workspace.prepare(private=config.private)
        with TemporaryDirectory(prefix=".import-", dir=workspace.root) as folder:
            run_dir = Path(folder) / run_id
            begin_run(
                run_dir, {**(written or stored_config(config)), "root": root}, job
            )
            save_job(run_dir, name, service.page(name))
            # It fails where another process has imported the run.
            with suppress(OSError):
                run_dir.rename(workspace.run_dir(run_id))
        refresh(workspace.run_dir(run_id), service)


def begin_run(run_dir: Path, stored: dict[str, Any], job: Json) -> RunRecord:
    """Begins the record of a run that a schedule or another machine has submitted.

    Args:
      run_dir: the run's folder, which is made.
      stored: the config, see ``stored_config``.
      job: with its spec.
    """
    run_dir.mkdir()
    atomic.write_json(run_dir / "config.json", stored)
    config = read_stored_config(run_dir / "config.json")
    record = RunRecord(
        run_id=run_dir.name,
        pipeline=config.name,
        command=f"vertex: {job['name']}",
        started_at=time_of(job, "createTime") or utc_now(),
        pushes=[PushRecord(cloud_locations(config).serving_dir)],
        config=plain_config(config),
    )
    record.save(run_dir)
    return record


def record_uri_of(config: Config, run_id: str) -> str:
    """Returns the folder in the bucket for the record of a run."""
    return f"{config.cloud_dir}/runs/{run_id}"


def run_id_of(job: Json) -> str:
    """Returns the id of a job's run, for a scheduled one by its time and name."""
    label = job.get("labels", {}).get(RUN_LABEL, "")
    # It becomes the name of a folder.
    if re.fullmatch(r"\w+-\w+", label):
        at, _, rest = label.partition("-")
        return f"{at.upper()}-{rest}"
    created = (time_of(job, "createTime") or utc_now())[:19]
    stamp = created.replace("-", "").replace(":", "")
    return f"{stamp}Z-{digest.of_bytes(job['name'].encode())[:4]}"


def log_reader(run_dir: Path, service: VertexService, job: str) -> ReadLog:
    """Returns a function that fetches the log of a task; without an answer, none."""

    def read_log(task: str) -> Sequence[str]:
        # It only explains a failure better.
        with suppress(RemoteError):
            return fetch_log(run_dir, service, job, task)
        return ()

    return read_log


def _add_documents(record: RunRecord, run_dir: Path, record_uri: str) -> None:
    """Adds the documents and the page that the job's exit handler has written."""
    storage, folder = storage_for(record_uri), run_dir / "documents"
    with suppress(OSError, ValueError):
        written = json.loads(storage.read(f"{record_uri}/{RECORD_FILE}"))
        for document in (DocumentRecord(**item) for item in written["documents"]):
            name = Path(document.path).name
            content = storage.read(f"{record_uri}/{document.path}")
            folder.mkdir(exist_ok=True)
            atomic.write_bytes(folder / name, content)
            record.documents.append(replace(document, path=f"documents/{name}"))
        if storage.exists(f"{record_uri}/report.html"):
            record.report_uri = f"{record_uri}/report.html"


def _sleep(seconds: float, observer: Observer) -> None:
    deadline_s = time.monotonic() + seconds
    while (left_s := deadline_s - time.monotonic()) > 0:
        observer.on_tick()
        time.sleep(min(left_s, 0.25))
