"""``sluice rehearse NAME``: runs the compiled pipeline here, as its service would."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.graph.choose_spans import choose_spans
from reports.compare import Comparison, compare
from reports.read_run import read_run
from runners.cli.diff import print_comparison
from runners.cli.options import (
    Result,
    config_options,
    typed_command,
    verb,
    wants_json,
)
from runners.cli.render_run import print_outcome
from runners.cli.rich_console import make_console, say
from runners.cli.run_view import RunView
from runners.cli.validate import validate
from runners.cloud.check_cloud import cloud_of
from runners.cloud.cloud_locations import cloud_locations
from runners.cloud.compile_spec import compile_checked
from runners.cloud.job_inputs import job_parameters
from runners.cloud.spec import read_spec
from runners.engine import Engine, Observer
from runners.local.write_report import write_report
from runners.operations.pipeline_request import validated, workspace_of
from runners.operations.prepared_run import PreparedRun, lock_workspace
from runners.operations.run import run
from runners.rehearsal.replace_services import needs_other_machines, replace_services
from runners.rehearsal.run_job import Rehearsal, run_job
from sluice.errors import ExitCode, UsageError
from sluice.machine_resources import usable_cores
from sluice.record.run_record import REHEARSAL, RunOptions, RunRecord
from sluice.storage.storage import is_remote
from sluice.workspace import Workspace, private_umask, workspaces_in


@verb("rehearse")
@config_options
@click.option(
    "--scheduled/--submitted",
    default=None,
    help="Compile for a schedule or for `sluice submit`. Default: a schedule if the "
    "config has cloud.schedule.",
)
@click.option("--fresh", is_flag=True, help="Forget earlier rehearsals.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.02,
    show_default=True,
    help="How far a metric may be from that of a local run.",
)
@click.option("--no-compare", is_flag=True, help="Do not run the pipeline locally too.")
@click.pass_obj
def rehearse_(
    engine: Engine | None,
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    scheduled: bool | None,
    fresh: bool,
    tolerance: float,
    no_compare: bool,
) -> Result:
    """Rehearse the pipeline NAME on this machine.

    The compiled pipeline runs task after task, each by its real command line, with a
    folder in place of buckets. Then the same config runs locally, and both are
    compared. A further call finds the model of the first one as its baseline.
    """
    console = make_console(to_stderr=wants_json())
    with RunView(console) as view:
        found = rehearse(
            name,
            profile=profile,
            overrides=overrides,
            command=typed_command(),
            scheduled=scheduled,
            fresh=fresh,
            tolerance=None if no_compare else tolerance,
            observer=view,
            engine=engine,
        )
    _print(console, found)
    facts = {
        "exit_code": found.exit_code,
        "record": found.record.to_dict(),
        "local": found.local and found.local.to_dict(),
        "differences": list(found.differences),
    }
    return Result(facts, exit_code=found.exit_code)


def _print(console: Console, found: Rehearsed) -> None:
    print_outcome(console, found.record)
    if found.comparison is not None:
        print_comparison(console, found.comparison)
        for line in found.differences:
            say(console, line, "red")
        if not found.differences:
            say(console, "verdicts and metrics are those of the local run", "green")


# For keys of the section ``cloud`` that nobody has filled in yet.
_PLACES = {
    "root": "gs://rehearsal/sluice",
    "image": "rehearsal.invalid/sluice",
    "project": "rehearsal",
    "region": "us-central1",
}


@dataclass(frozen=True)
class Rehearsed:
    """Result of a rehearsal.

    Attributes:
      record: of the rehearsed run.
      local: of the local run that it was compared with; None without one.
      comparison: of the two.
      differences: in verdicts and metrics, one line each.
      exit_code: that of the rehearsed run; 7 if it differs from the local one; that of
        a local run which was interrupted.
    """

    record: RunRecord
    local: RunRecord | None = None
    comparison: Comparison | None = None
    differences: tuple[str, ...] = ()
    exit_code: int = 0


def rehearse(
    name: str,
    *,
    profile: str | None = None,
    overrides: tuple[str, ...] = (),
    command: str = "runners.cli.rehearse",
    scheduled: bool | None = None,
    fresh: bool = False,
    tolerance: float | None = 0.02,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> Rehearsed:
    """Runs the compiled pipeline of a config on this machine, then the same locally.

    Args:
      name: a config's name or path.
      profile: an overlay's name.
      overrides: ``KEY=VALUE``.
      command: the command line or the caller, for the record.
      scheduled: compile for a schedule; None if the config has ``cloud.schedule``.
      fresh: forget earlier rehearsals.
      tolerance: the largest difference of a metric from a local run, absolute; None not
        to run the pipeline locally.
      observer: of both runs.
      engine: executes the local run; None for processes of this machine.

    Raises:
      UsageError: the config or the data is wrong.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the disk is full.
    """
    observer = observer or Observer()

    def load(*more: str) -> Config:
        return load_config(name, profile=profile, overrides=(*overrides, *more))

    config = validated(load())
    cloud = cloud_of(config)
    if is_remote(config.data.dir):
        raise UsageError(
            "a rehearsal reaches no bucket, so it needs a local copy of the data",
            where=config.data.dir,
            hint="--set data.dir=DIR",
        )
    if config.train.strategy == "tpu":
        observer.on_note("compiling the training for a TPU")
        found = validate(config.model_copy(update={"cloud": None}), "tpu")
        for warning in found.warnings:
            observer.on_warning(warning)
    workspace = workspace_of(config)
    workspace.prepare(private=config.private)
    folder = workspace.root / REHEARSAL
    locking = lock_workspace(workspace, command, False, observer)
    with private_umask(config.private), locking:
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        given = {key: getattr(cloud, key) or value for key, value in _PLACES.items()}
        places = [f"cloud.{key}={value}" for key, value in given.items()]
        places.append(f"data.dir={given['root']}/{config.name}/data")
        in_cloud = validated(load(*places))
        record = _rehearse(
            config, in_cloud, workspace, folder, command, scheduled, observer
        )
        skipped = any(node.state == "skipped" for node in record.nodes)
        if tolerance is None or record.exit_code or skipped:
            return Rehearsed(record, exit_code=record.exit_code or 0)
        observer.on_note("the same locally, to compare with")
        more = []
        if needs_other_machines(config.train.model_dump()):
            more.append("train.strategy=one_device")
        if config.push.serving_dir is not None:
            more.append(f"push.serving_dir={folder / 'local' / 'serving'}")
        options = RunOptions(workers=usable_cores(), use_cache=False)
        with workspaces_in(str(folder / "local")):
            local = run(
                load(*more), options, command=command, observer=observer, engine=engine
            )
    if local.status == "interrupted":
        return Rehearsed(record, local, exit_code=local.exit_code or 0)
    here = Workspace(folder / "local" / config.name).run_dir(local.run_id)
    with read_run(here) as before, read_run(workspace.run_dir(record.run_id)) as after:
        comparison = compare(before, after)
    lines = _verdicts(local, record)
    for item in comparison.metrics:
        if item.delta is None or abs(item.delta) > tolerance:
            values = f"{item.before} locally, {item.after} rehearsed"
            lines.append(f"{item.metric} of {item.slice}: {values}")
    exit_code = int(ExitCode.NODE) if lines else 0
    return Rehearsed(record, local, comparison, tuple(lines), exit_code)


def _rehearse(
    config: Config,
    in_cloud: Config,
    workspace: Workspace,
    folder: Path,
    command: str,
    scheduled: bool | None,
    observer: Observer,
) -> RunRecord:
    """Compiles a config, and runs the job with ``gs://`` replaced by a folder."""

    def here(address: str) -> str:
        return address.replace("gs://", f"{folder}/")

    cloud = cloud_of(in_cloud)
    if scheduled is None:
        scheduled = cloud.schedule is not None
    data = Path(here(in_cloud.data.dir))
    data.parent.mkdir(parents=True, exist_ok=True)
    data.unlink(missing_ok=True)
    data.symlink_to(config.data_dir.resolve())
    observer.on_note("compiling the pipeline for its service")
    compiled = compile_checked(in_cloud, scheduled=scheduled)
    for item in compiled.uploads:
        target = Path(here(item.uri))
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if item.path.is_dir() else shutil.copyfile
            copy(item.path, target)
    job = json.loads(here(json.dumps(compiled.job)))
    serving_dir = here(cloud_locations(in_cloud).serving_dir)
    read = in_cloud.data.model_copy(update={"dir": str(data)})
    here_too = in_cloud.model_copy(update={"data": read})
    prepared = PreparedRun(here_too, choose_spans(here_too), workspace, serving_dir)
    values = job["runtimeConfig"].setdefault("parameterValues", {})
    if not scheduled:
        # As `sluice submit` does.
        inputs_uri = here(cloud_locations(in_cloud).inputs_uri)
        values |= job_parameters(job, serving_dir, inputs_uri, prepared.choice)
    job, notes = replace_services(job)
    record = prepared.begin(RunOptions(), command, {REHEARSAL: ""})
    record.notes += notes
    prepared.save(record)
    prepared.record_inputs(record)
    run_dir = workspace.run_dir(record.run_id)
    rehearsal = Rehearsal(
        read_spec(job),
        record,
        run_dir,
        folder / "documents" / record.run_id,
        config.root,
        is_kubeflow=cloud.engine == "kubeflow",
    )
    run_job(rehearsal, observer)
    write_report(record, run_dir)
    return record


def _verdicts(local: RunRecord, rehearsed: RunRecord) -> list[str]:
    """Returns the gates that have decided otherwise."""
    one, other = (
        {gate["gate"]: gate["passed"] for gate in record.gates}
        for record in (local, rehearsed)
    )
    return [
        f"{gate} gate: passed {one.get(gate)} locally, {other.get(gate)} rehearsed"
        for gate in sorted(one.keys() | other.keys())
        if one.get(gate) != other.get(gate)
    ]
