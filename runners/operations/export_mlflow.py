"""Operation: writes runs into an MLflow tracking store.

Each pipeline is an experiment and each run a run with the tag ``sluice.run_id``. A run
that is exported already is left as it is, unless it was resumed since.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from reports.evaluation import OVERALL
from reports.read_run import REPORT_FILE, RunData
from reports.run_table import examples, metrics
from runners.engine import Observer
from runners.operations.find_run import (
    not_run_yet,
    readable_runs,
    updated_workspace,
)
from sluice.errors import UsageError
from sluice.json_values import flatten
from sluice.record.outcome import duration_s, outcome, version
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.workspace import private_umask

_RUN_ID, _ENDED_AT = "sluice.run_id", "sluice.ended_at"
_STATUSES = {"failed": "FAILED", "interrupted": "KILLED"}
# What MLflow forbids in names, as `=` of a slice and `[0]` of a list in the config.
_FORBIDDEN = re.compile(r"[^\w. -]+ *", re.ASCII)
# MLflow 3 refuses the file store without the first, and reports its use without the
# second; the last is for a server that is not there, which takes minutes otherwise.
_SETTINGS = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
}


def export_to_mlflow(
    name: str, to: str | None = None, observer: Observer | None = None
) -> dict[str, Any]:
    """Exports all runs of a pipeline that have ended.

    Args:
      name: of the pipeline.
      to: a directory or a tracking URI; None for ``mlruns`` beside the workspace.
      observer: of warnings.

    Returns:
      The tracking ``uri``, the ``experiment``, the ``runs`` that were written with the
      ids that MLflow gave them, and those ``unchanged`` and ``unfinished``.

    Raises:
      UsageError: there is no run, or MLflow cannot write.
    """
    observer = observer or Observer()
    workspace = updated_workspace(name)
    records = list(readable_runs(workspace))[::-1]
    if not records:
        raise not_run_yet(name, workspace)
    uri = to or str(workspace.root.parent / "mlruns")
    uri = uri if "://" in uri else Path(uri).resolve().as_uri()
    experiment, tracking = records[-1].pipeline, _import_mlflow()
    runs: dict[str, str] = {}
    unchanged, unfinished = [], []
    try:
        client = tracking.MlflowClient(uri)
        found = client.get_experiment_by_name(experiment)
        place = found.experiment_id if found else client.create_experiment(experiment)
        for record in records:
            if record.status == "running":
                unfinished.append(record.run_id)
            elif _is_exported(client, place, record):
                unchanged.append(record.run_id)
            else:
                run = RunData(workspace.run_dir(record.run_id), record)
                with private_umask(bool(record.config.get("private"))):
                    runs[record.run_id] = _export(client, place, run)
                for notice in run.notices:
                    observer.on_warning(f"run {record.run_id}: {notice}")
    except (tracking.MlflowException, OSError) as error:
        raise UsageError(f"MLflow cannot write the runs: {error}", where=uri) from error
    return {
        "uri": uri,
        "experiment": experiment,
        "runs": runs,
        "unchanged": unchanged,
        "unfinished": unfinished,
    }


def _import_mlflow() -> Any:
    for setting, value in _SETTINGS.items():
        os.environ.setdefault(setting, value)
    try:
        import mlflow
    except ImportError as error:
        raise UsageError(
            f"MLflow's client is not installed: {error}",
            hint=f"{sys.executable} -m pip install mlflow-skinny",
        ) from error
    return mlflow


def _is_exported(client: Any, experiment: str, record: RunRecord) -> bool:
    """Whether a run was exported as it is now; deletes it if it was resumed since."""
    wanted = f"tags.`{_RUN_ID}` = '{record.run_id}'"
    for old in client.search_runs([experiment], filter_string=wanted):
        if old.data.tags.get(_ENDED_AT) == record.ended_at:
            return True
        # Or its export was killed.
        client.delete_run(old.info.run_id)
    return False


def _export(client: Any, experiment: str, run: RunData) -> str:
    """Writes a run, and returns the id that MLflow gave it."""
    record = run.record
    ended_ms = _milliseconds(record.ended_at or record.started_at)
    created = client.create_run(
        experiment,
        start_time=_milliseconds(record.started_at),
        run_name=record.run_id,
        tags=_tags(record),
    )
    run_id = created.info.run_id
    for name, value in flatten(record.config).items():
        client.log_param(run_id, _allowed(name), value)
    for words, value, step in _metrics(run):
        name = "/".join(map(_allowed, words))
        client.log_metric(run_id, name, value, ended_ms, step)
    for path in (run.run_dir / RECORD_FILE, run.run_dir / REPORT_FILE):
        if path.exists():
            client.log_artifact(run_id, str(path))
    status = _STATUSES.get(record.status, "FINISHED")
    client.set_terminated(run_id, status=status, end_time=ended_ms)
    # Last: a run without it is not complete.
    client.set_tag(run_id, _ENDED_AT, record.ended_at)
    return run_id


def _tags(record: RunRecord) -> dict[str, str]:
    own = {
        "run_id": record.run_id,
        "verdict": outcome(record),
        "version": version(record),
        "exit_code": record.exit_code,
        "command": record.command,
        **flatten(record.digests, "digest"),
    }
    tags = {f"sluice.{key}": str(x) for key, x in own.items() if x is not None}
    return {**record.tags, **tags}


def _metrics(run: RunData) -> Iterator[tuple[tuple[str, ...], float, int]]:
    """Yields groups and name, value and epoch (or 0) of each metric."""
    for (where, name), value in metrics(run).items():
        yield (*(() if where == OVERALL else (f"slice {where}",)), name), value, 0
    seconds = {node.id: node.duration_s for node in run.record.nodes}
    for name, length in {"run": duration_s(run.record), **seconds}.items():
        if length is not None:
            yield ("duration_s", name), length, 0
    for split, count in examples(run).items():
        yield ("examples", split), count, 0
    for artifact in run.documents("epochs"):
        for metric, curve in artifact["metrics"].items():
            for epoch, value in zip(artifact["epochs"], curve, strict=True):
                if value is not None:
                    yield (artifact["node"], metric), float(value), epoch


def _allowed(name: str) -> str:
    """Returns a name that MLflow allows: ``a[0].b`` becomes ``a.0.b``."""
    return _FORBIDDEN.sub("_", re.sub(r"\[(\d+)\]", r".\1", name)).strip(" .")


def _milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)
