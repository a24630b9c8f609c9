"""Operation: writes runs into an MLflow tracking store.

MLflow's own client writes them, so that MLflow reads them in any of its versions. Each
pipeline is an experiment and each run a run with the tag ``sluice.run_id``. A run that
is exported already is left as it is; one that has been resumed since is replaced. Runs
in progress are left out.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from reports.read_run import RunData
from reports.run_values import (
    OVERALL,
    duration_s,
    examples,
    metrics,
    outcome,
    parameters,
    version,
)
from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.find_run import (
    Warn,
    find_run,
    find_workspace,
    ignore,
    not_run_yet,
    readable_runs,
)
from runners.operations.pipeline_request import WorkspaceRequest
from sluice.errors import UsageError
from sluice.json_paths import flatten
from sluice.printable import printable
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.workspace import Workspace, private_umask

RUN_ID = "sluice.run_id"
_ENDED_AT = "sluice.ended_at"
_STATUSES = {"failed": "FAILED", "interrupted": "KILLED"}
# MLflow's limits on names, values and entities per request.
_FORBIDDEN = re.compile(r"[^\w. -]+ *", re.ASCII)
_MAX_NAME, _MAX_PARAMETER, _MAX_TAG, _MAX_BATCH = 120, 500, 5000, 100
_MAX_METRICS = 10_000
# MLflow 3 refuses the file store, which it no longer develops, and reports its use.
# Its set-up of logging would close all other handlers of the process; MLflow 2 has
# another name for this setting.
SETTINGS = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_CONFIGURE_LOGGING": "false",
    "MLFLOW_LOGGING_CONFIGURE_LOGGING": "false",
    # Of a server that is not there; the default of 7 takes minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
}


@dataclass(frozen=True, kw_only=True)
class ExportRequest(WorkspaceRequest):
    """The runs to export.

    Attributes:
      run_id: a run, see ``find_run``; None for all.
      to: a directory, or a tracking URI such as ``http://localhost:5000``; None for
        ``mlruns`` beside the workspace.
    """

    run_id: str | None = None
    to: str | None = None


@dataclass
class Exported:
    """What was exported.

    ``runs`` has MLflow's run ids by those of the runs that were written; ``unchanged``
    were exported before, ``unfinished`` are in progress.
    """

    uri: str
    experiment: str
    runs: dict[str, str] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"schema_version": 1, **vars(self)}


def export_mlflow(request: ExportRequest, warn: Warn = ignore) -> Exported:
    """Exports a run of a pipeline, or all.

    Raises:
      UsageError: there is no such pipeline or run; MLflow is not installed, or cannot
        write.
    """
    workspace = find_workspace(request.name, request.workspace_dir)
    if request.run_id:
        given = request.workspace_dir
        found = find_run(request.name, given, run_id=request.run_id, warn=warn)
        records = [found.record]
    else:
        complete_killed_runs(workspace)
        records = list(readable_runs(workspace, warn))[::-1]
    if not records:
        raise not_run_yet(request.name, workspace, request.workspace_dir)
    uri = _tracking_uri(request.to, workspace)
    exported = Exported(uri, records[-1].pipeline)
    with _client(uri) as client:
        experiment = _experiment(client, exported.experiment)
        for record in records:
            run = RunData(workspace.run_dir(record.run_id), record)
            with private_umask(bool(record.config.get("private"))):
                _export(client, experiment, run, exported)
            for notice in run.notices:
                warn(f"run {record.run_id}: {notice}")
    return exported


def _tracking_uri(to: str | None, workspace: Workspace) -> str:
    if to and "://" in to:
        return to
    place = Path(to) if to else workspace.root.parent / "mlruns"
    return place.resolve().as_uri()


@contextmanager
def _client(uri: str) -> Iterator[Any]:
    """Yields MLflow's client; its errors are explained."""
    added = {k: v for k, v in SETTINGS.items() if k not in os.environ}
    os.environ.update(added)
    try:
        with warnings.catch_warnings():
            # Of the old name of a setting.
            warnings.simplefilter("ignore")
            from mlflow.exceptions import MlflowException
            from mlflow.tracking import MlflowClient
        try:
            yield MlflowClient(tracking_uri=uri)
        except (MlflowException, OSError) as error:
            raise UsageError(
                "MLflow cannot write the runs",
                where=uri,
                actual=str(error),
                hint="give another directory or a tracking server: --to URI",
            ) from error
    except ImportError as error:
        raise UsageError(
            "MLflow's client is not installed",
            actual=str(error),
            hint=f"{sys.executable} -m pip install mlflow-skinny",
        ) from error
    finally:
        for name in added:
            del os.environ[name]


def _experiment(client: Any, name: str) -> str:
    found = client.get_experiment_by_name(name)
    return found.experiment_id if found else client.create_experiment(name)


def _export(client: Any, experiment: str, run: RunData, exported: Exported) -> None:
    record = run.record
    if record.status == "running":
        exported.unfinished.append(record.run_id)
        return
    ended_at = record.ended_at or record.started_at
    for old in client.search_runs(
        [experiment], filter_string=f"tags.`{RUN_ID}` = '{record.run_id}'"
    ):
        if old.data.tags.get(_ENDED_AT) == ended_at:
            exported.unchanged.append(record.run_id)
            return
        # Resumed since, or the export was killed.
        client.delete_run(old.info.run_id)
    started_ms, ended_ms = _milliseconds(record.started_at), _milliseconds(ended_at)
    created = client.create_run(
        experiment,
        start_time=started_ms,
        run_name=record.run_id,
        tags={RUN_ID: record.run_id},
    )
    run_id = created.info.run_id
    _log(client, run_id, run, started_ms, ended_ms)
    for path in (run.run_dir / RECORD_FILE, run.run_dir / "report.html"):
        if path.exists():
            client.log_artifact(run_id, str(path))
    status = _STATUSES.get(record.status, "FINISHED")
    client.set_terminated(run_id, status=status, end_time=ended_ms)
    # Last: a run without it is not complete.
    client.set_tag(run_id, _ENDED_AT, ended_at)
    exported.runs[record.run_id] = run_id


def _log(
    client: Any, run_id: str, run: RunData, started_ms: int, ended_ms: int
) -> None:
    from mlflow.entities import Metric, Param, RunTag

    parts: dict[str, list[Any]] = {
        "params": [Param(*item) for item in _parameters(run.record)],
        "tags": [RunTag(*item) for item in _tags(run.record)],
        "metrics": [
            Metric(name, value, ended_ms if step is None else started_ms, step or 0)
            for name, value, step in _metrics(run)
        ],
    }
    for part, items in parts.items():
        for start in range(0, len(items), _MAX_BATCH):
            client.log_batch(run_id, **{part: items[start : start + _MAX_BATCH]})


def _parameters(record: RunRecord) -> list[tuple[str, str]]:
    names = _Names()
    return [
        (names.add(name), printable(str(value))[:_MAX_PARAMETER])
        for name, value in parameters([record])[0].items()
    ]


def _tags(record: RunRecord) -> list[tuple[str, str]]:
    own = {
        "verdict": outcome(record),
        "version": version(record),
        "exit_code": record.exit_code,
        "command": record.command,
        **flatten(record.digests, "digest"),
    }
    tags = {f"sluice.{name}": value for name, value in own.items() if value is not None}
    return [
        (key, printable(str(value))[:_MAX_TAG])
        for key, value in {**record.tags, **tags}.items()
    ]


def _metrics(run: RunData) -> list[tuple[str, float, int | None]]:
    """Returns name, value and epoch of each metric; no epoch for those of the run."""
    names = _Names(["duration_s", "examples", *(node.id for node in run.record.nodes)])
    found: list[tuple[str, float, int | None]] = []

    def add(name: str, value: float | None, group: str = "") -> None:
        if value is not None:
            found.append((names.add(name, group), value, None))

    for (where, name), value in metrics(run).items():
        add(name, value, "" if where == OVERALL else f"slice {where}")
    add("run", duration_s(run.record), "duration_s")
    for node in run.record.nodes:
        add(node.id, node.duration_s, "duration_s")
    for split, count in examples(run).items():
        add(split, count, "examples")
    for artifact in run.artifacts("epochs"):
        for metric, curve in artifact["metrics"].items():
            name = names.add(metric, artifact["node"])
            found += [
                (name, float(value), epoch)
                for epoch, value in zip(artifact["epochs"], curve, strict=True)
                if value is not None
            ]
    if len(found) > _MAX_METRICS:
        run.notices.append(f"{len(found) - _MAX_METRICS} metrics are left out")
    return found[:_MAX_METRICS]


class _Names:
    """Names that MLflow allows, each given once.

    Args:
      groups: names of groups, which MLflow shows together. In a file store they are
        folders, so that no metric may have the name of one.
    """

    def __init__(self, groups: Iterable[str] = ()) -> None:
        self._taken = {_allowed(group) for group in groups}

    def add(self, name: str, group: str = "") -> str:
        """Returns a name that is new and as similar as possible."""
        wanted = "/".join(map(_allowed, filter(None, (group, name))))
        unique, number = wanted, 1
        while unique in self._taken:
            number += 1
            unique = f"{wanted}_{number}"
        self._taken.add(unique)
        return unique


def _allowed(part: str) -> str:
    # ``thresholds[0].metric`` becomes ``thresholds.0.metric``.
    text = _FORBIDDEN.sub("_", re.sub(r"\[(\d+)\]", r".\1", part))
    return text[:_MAX_NAME].strip(" .") or "_"


def _milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)
