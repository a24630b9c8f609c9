"""Brings the record of a run in a service up to date.

Under a lock, so that two terminals append no event twice. What the service knows for a
while only (the end of a failed task's log) is kept in the run's folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pipeline.config.serialize import plain_config, read_stored_config
from runners.cloud.cloud_locations import cloud_locations
from runners.cloud.service import ENDED, Service, ServiceJob
from runners.cloud.service_run import graph_of, new_events
from runners.cloud.spec import load_spec, read_spec
from runners.cloud.submitted_job import (
    JOB_FILE,
    SPEC_FILE,
    SubmittedJob,
    record_uri_of,
)
from runners.engine import Observer
from sluice.clock import utc_now
from sluice.errors import ExitCode, RemoteError
from sluice.record.events import (
    DocumentsAdded,
    Event,
    ReportWritten,
    RunStarted,
    Stopped,
)
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import DocumentRecord, RunRecord
from sluice.secrets import redact
from sluice.storage import atomic, digest
from sluice.storage.storage import storage_for

LOG_LINES = 1000
# A job may be found only a while after it was submitted.
_GRACE = timedelta(minutes=10)
_MAX_FAILURES = 5

OnEvent = Callable[[Event, RunRecord], None]


def refresh(
    run_dir: Path, service: Service, on_event: OnEvent = lambda event, record: None
) -> RunRecord:
    """Appends what has happened since the last call, and returns the record.

    Args:
      run_dir: of a run that was submitted.
      service: that runs it.
      on_event: called with each new event.

    Raises:
      RemoteError: the service refuses or does not answer.
      WorkspaceError: the run's folder cannot be read or written.
    """
    with atomic.lock(run_dir / f".{JOB_FILE}.lock"):
        recorder = Recorder(run_dir, on_event)
        if recorder.record.status != "running":
            return recorder.record
        submitted = SubmittedJob.load(run_dir)
        begun_at = max([submitted.submitted_at, *recorder.record.resumed_at])
        if begun_at != submitted.submitted_at:
            # Resumed, and its next job is not submitted yet: this one has ended.
            job = None
        elif submitted.name:
            job = service.get(submitted.name)
        else:
            job = service.find(submitted.job_id)
        if job is None:
            _end_if_lost(recorder, submitted.job_id, begun_at)
            return recorder.record
        if not submitted.name:
            page = service.page(job.name)
            replace(submitted, name=job.name, page=page).save(run_dir)
        _append(recorder, service, submitted, job)
        return recorder.record


def begin_elsewhere(
    run_dir: Path, stored: Mapping[str, Any], service: Service, job: ServiceJob
) -> str:
    """Begins the record of a run that a schedule or another machine has submitted.

    Args:
      run_dir: an empty folder, named as the run.
      stored: the config, see ``stored_config``.
      service: that runs the job.
      job: with its spec.

    Returns:
      Where the job writes its record.
    """
    atomic.write_json(run_dir / "config.json", dict(stored))
    config = read_stored_config(run_dir / "config.json")
    text = json.dumps(job.spec, indent=1, sort_keys=True)
    atomic.write_text(run_dir / SPEC_FILE, text)
    spec, created_at = read_spec(job.spec), job.created_at or utc_now()
    submitted = SubmittedJob(
        job_id=job.name.rpartition("/")[2],
        spec_digest=digest.of_bytes(text.encode()),
        record_uri=record_uri_of(config, run_dir.name),
        submitted_at=created_at,
        name=job.name,
        page=service.page(job.name),
    )
    begun = RunStarted(
        at=created_at,
        run_id=run_dir.name,
        pipeline=config.name,
        command=f"{service.engine}: {job.name}",
        destination=cloud_locations(config).serving_dir,
        config=plain_config(config),
        workers=1,
        use_cache=True,
        forced=(),
        from_nodes=(),
        to_nodes=(),
        accept_data=spec.parameter_values.get("accept_data") or None,
        resume_command=None,
    )
    recorder = Recorder(run_dir)
    recorder.apply(begun)
    recorder.apply(graph_of(spec))
    submitted.save(run_dir)
    return submitted.record_uri


def follow(
    run_dir: Path, service: Service, observer: Observer, poll_s: float
) -> RunRecord:
    """Refreshes the record until the run has ended, and returns it.

    A service that does not answer is asked again; the run goes on there. After several
    failures a warning says so, and the record so far is returned.

    Raises:
      KeyboardInterrupt: SIGINT; the run goes on.
    """
    failures = 0
    while True:
        try:
            record = refresh(run_dir, service, observer.on_event)
            failures = 0
        except RemoteError as error:
            failures += 1
            record = Recorder(run_dir).record
            if failures == _MAX_FAILURES:
                observer.on_warning(f"{error}\nthe run goes on without being watched")
                return record
        if record.status != "running":
            return record
        _sleep(poll_s, observer)


def fetch_log(run_dir: Path, service: Service, name: str, task: str) -> Sequence[str]:
    """Stores the last lines of a task's log in ``logs/``, and returns them."""
    lines = [redact(line) for line in service.logs(name, task, LOG_LINES)]
    if lines:
        path = run_dir / "logs" / f"{task}.log"
        path.parent.mkdir(exist_ok=True)
        atomic.write_text(path, "\n".join(lines) + "\n")
    return lines


def _append(
    recorder: Recorder, service: Service, submitted: SubmittedJob, job: ServiceJob
) -> None:
    run_dir = recorder.run_dir

    def read_log(task: str) -> Sequence[str]:
        # It only explains a failure better.
        with suppress(RemoteError):
            return fetch_log(run_dir, service, job.name, task)
        return ()

    if job.state in ENDED:
        _add_record(recorder, submitted.record_uri)
    journal = Journal(run_dir).events()
    spec = load_spec(run_dir / SPEC_FILE)
    for event in new_events(run_dir, spec, journal, job, read_log):
        recorder.apply(event)


def _add_record(recorder: Recorder, record_uri: str) -> None:
    """Adds the documents and the page that the job's exit handler has written."""
    storage, run_dir = storage_for(record_uri), recorder.run_dir
    with suppress(OSError):
        documents = []
        for name in storage.names(f"{record_uri}/record"):
            content = storage.read(f"{record_uri}/record/{name}")
            path = run_dir / "record" / name
            path.parent.mkdir(exist_ok=True)
            atomic.write_bytes(path, content)
            node, _, kind = name.removesuffix(".json").rpartition(".")
            known = DocumentRecord(
                kind, node, f"record/{name}", digest.of_bytes(content)
            )
            documents.append(known)
        if documents:
            recorder.apply(DocumentsAdded(documents=tuple(documents)))
        if storage.exists(f"{record_uri}/report.html"):
            recorder.apply(ReportWritten(uri=f"{record_uri}/report.html"))


def _end_if_lost(recorder: Recorder, job_id: str, begun_at: str) -> None:
    """Ends a run whose job the service does not have, after a while."""
    age = datetime.now(timezone.utc) - datetime.fromisoformat(begun_at)
    if age < _GRACE:
        return
    text = f"the service has no job {job_id}: it was never submitted, or was deleted"
    recorder.apply(Stopped(message=text, exit_code=int(ExitCode.REMOTE)))
    recorder.end(reason="is not known to the service any more")


def _sleep(seconds: float, observer: Observer) -> None:
    deadline_s = time.monotonic() + seconds
    while (left_s := deadline_s - time.monotonic()) > 0:
        observer.on_tick()
        time.sleep(min(left_s, 0.25))
