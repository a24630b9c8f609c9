"""``sluice export mlflow NAME``: writes runs into an MLflow tracking store.

Each pipeline is an experiment and each run a run with the tag ``sluice.run_id``. A run
that is exported already is left as it is, unless it was resumed since.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from reports.evaluation import OVERALL
from reports.read_run import RunData
from reports.run_table import (
    duration_s,
    examples,
    metrics,
    outcome,
    version,
)
from runners.cli.echo import echo, echo_warning
from runners.cli.options import Result, verb
from runners.operations.find_run import (
    find_run,
    not_run_yet,
    readable_runs,
    updated_workspace,
)
from sluice.errors import UsageError
from sluice.json_paths import flatten
from sluice.printable import printable
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.workspace import private_umask

_RUN_ID, _ENDED_AT = "sluice.run_id", "sluice.ended_at"
_STATUSES = {"failed": "FAILED", "interrupted": "KILLED"}
# MLflow's limits on names and values.
_FORBIDDEN = re.compile(r"[^\w. -]+ *", re.ASCII)
_MAX_NAME, _MAX_VALUE = 120, 500
# MLflow 3 refuses the file store without the first, and reports its use without the
# second; the last is for a server that is not there, which takes minutes otherwise.
_SETTINGS = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_CONFIGURE_LOGGING": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
}


@click.group()
def export() -> None:
    """Export runs for other tools."""


@verb(group=export)
@click.argument("name")
@click.option("run_id", "--run", metavar="ID", help="Export one run; default: all.")
@click.option(
    "--to",
    metavar="DIR|URI",
    help="A directory or a tracking URI; default: mlruns beside the workspace.",
)
def mlflow(name: str, run_id: str | None, to: str | None) -> Result:
    """Write the runs of the pipeline NAME into an MLflow tracking store.

    Parameters, metrics per slice and per epoch, tags, report.html and run.json. A run
    that was exported before is not written again.
    """
    workspace = updated_workspace(name)
    records = list(readable_runs(workspace))[::-1]
    if run_id:
        records = [find_run(name, run_id, workspace).record]
    if not records:
        raise not_run_yet(name, workspace)
    uri = to or str(workspace.root.parent / "mlruns")
    uri = uri if "://" in uri else Path(uri).resolve().as_uri()
    experiment = records[-1].pipeline
    done: dict[str, Any] = {"runs": {}, "unchanged": [], "unfinished": []}
    tracking = _import_mlflow()
    try:
        client = tracking.MlflowClient(tracking_uri=uri)
        found = client.get_experiment_by_name(experiment)
        place = found.experiment_id if found else client.create_experiment(experiment)
        for record in records:
            run = RunData(workspace.run_dir(record.run_id), record)
            with private_umask(bool(record.config.get("private"))):
                _export(client, place, run, done)
            for notice in run.notices:
                echo_warning(f"run {record.run_id}: {notice}")
    except (tracking.MlflowException, OSError) as error:
        raise UsageError(
            f"MLflow cannot write the runs: {error}",
            where=uri,
            hint="give another directory or a tracking server: --to URI",
        ) from error
    facts = {"uri": uri, "experiment": experiment, **done}
    return Result(facts, partial(_print_exported, facts))


def _print_exported(facts: dict[str, Any]) -> None:
    uri, runs = facts["uri"], facts["runs"]
    echo(f"exported {len(runs)} runs to the experiment {facts['experiment']!r}")
    if facts["unchanged"]:
        echo(f"{len(facts['unchanged'])} runs were exported before")
    if facts["unfinished"]:
        echo(f"not exported, in progress: {', '.join(facts['unfinished'])}")
    setting = "MLFLOW_ALLOW_FILE_STORE=true " if uri.startswith("file:") else ""
    echo(f"view: {setting}mlflow ui --backend-store-uri {uri}")


def _import_mlflow() -> Any:
    for setting, value in _SETTINGS.items():
        os.environ.setdefault(setting, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mlflow
    except ImportError as error:
        raise UsageError(
            f"MLflow's client is not installed: {error}",
            hint=f"{sys.executable} -m pip install mlflow-skinny",
        ) from error
    return mlflow


def _export(client: Any, experiment: str, run: RunData, done: dict[str, Any]) -> None:
    record = run.record
    if record.status == "running":
        done["unfinished"].append(record.run_id)
        return
    ended_at = record.ended_at or record.started_at
    for old in client.search_runs(
        [experiment], filter_string=f"tags.`{_RUN_ID}` = '{record.run_id}'"
    ):
        if old.data.tags.get(_ENDED_AT) == ended_at:
            done["unchanged"].append(record.run_id)
            return
        # Resumed since, or the export was killed.
        client.delete_run(old.info.run_id)
    ended_ms = _milliseconds(ended_at)
    run_id = client.create_run(
        experiment,
        start_time=_milliseconds(record.started_at),
        run_name=record.run_id,
        tags=_tags(record),
    ).info.run_id
    for name, value in flatten(record.config).items():
        client.log_param(run_id, _allowed(name), _text(value))
    for words, value, step in _metrics(run):
        name = "/".join(map(_allowed, words))
        client.log_metric(run_id, name, value, ended_ms, step)
    for path in (run.run_dir / RECORD_FILE, run.run_dir / "report.html"):
        if path.exists():
            client.log_artifact(run_id, str(path))
    status = _STATUSES.get(record.status, "FINISHED")
    client.set_terminated(run_id, status=status, end_time=ended_ms)
    # Last: a run without it is not complete.
    client.set_tag(run_id, _ENDED_AT, ended_at)
    done["runs"][record.run_id] = run_id


def _tags(record: RunRecord) -> dict[str, str]:
    own = {
        "run_id": record.run_id,
        "verdict": outcome(record),
        "version": version(record),
        "exit_code": record.exit_code,
        "command": record.command,
        **flatten(record.digests, "digest"),
    }
    tags = {f"sluice.{name}": value for name, value in own.items() if value is not None}
    return {key: _text(value) for key, value in {**record.tags, **tags}.items()}


def _metrics(run: RunData) -> Iterator[tuple[tuple[str, ...], float, int]]:
    """Yields groups and name, value and epoch (or 0) of each metric."""
    for (where, name), value in metrics(run).items():
        if value is not None:
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
    text = _FORBIDDEN.sub("_", re.sub(r"\[(\d+)\]", r".\1", name))
    return text[:_MAX_NAME].strip(" .") or "_"


def _text(value: Any) -> str:
    return printable(str(value))[:_MAX_VALUE]


def _milliseconds(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)
