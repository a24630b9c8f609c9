"""``sluice run NAME``: runs a pipeline on this machine and says how it went."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from pipeline.check_inputs import check_inputs
from pipeline.config import Config
from pipeline.load_config import load_config
from pipeline.retries import Retries
from pipeline.run_inputs import RunInputs, run_inputs
from pipeline.stored_config import plain_config, write_stored_config
from pipeline.validate_config import validate_config
from runners.cli.carry_out import (
    carry_out,
    default_workers,
    not_run,
    predict_command,
    report,
    resume_command,
)
from runners.cli.console import make_console, plain
from runners.cli.options import (
    config_options,
    json_option,
    serving_dir_of,
    workspace_of,
    workspace_option,
)
from runners.local import last_complete
from runners.local.complete_runs import complete_killed_runs
from runners.local.execute import Plan
from runners.local.metadata_file import check_metadata, keep_copy
from runners.local.nursery import Nursery
from runners.local.record_run import RecordRun
from runners.local.stop_request import StopRequest
from runners.local.surroundings import Surroundings
from sample_data import catalog
from sluice import atomic
from sluice.errors import SluiceError
from sluice.file_digests import FileDigests
from sluice.full_disk import explain_full_disk
from sluice.project import activate
from sluice.run_record import RunRecord
from sluice.workspace import Workspace, utc_now

INPUTS_FILE = "inputs.json"


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was given."""

    name: str
    profile: str | None
    overrides: tuple[str, ...]
    workspace_dir: str | None
    command: str
    workers: int
    wait: bool
    use_cache: bool
    forced: tuple[str, ...]
    from_nodes: tuple[str, ...]
    to_nodes: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether an unchanged pipeline has nothing to do."""
        return self.use_cache and not (self.forced or self.from_nodes or self.to_nodes)


_RUN_OPTIONS = (
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Nodes that run at the same time; default: the cores.",
    ),
    click.option("--wait", is_flag=True, help="Wait for another run to end."),
    click.option("--no-cache", is_flag=True, help="Run every node."),
    click.option(
        "forced", "--force", multiple=True, metavar="NODE", help="Run NODE anyway."
    ),
    click.option(
        "from_nodes", "--from", multiple=True, metavar="NODE", help="Begin at NODE."
    ),
    click.option(
        "to_nodes", "--to", multiple=True, metavar="NODE", help="End at NODE."
    ),
    click.option("only", "--only", metavar="NODE", help="Run NODE and no other."),
)


def _run_options(function: Callable) -> Callable:
    for option in reversed(_RUN_OPTIONS):
        function = option(function)
    return function


@click.command()
@config_options
@_run_options
@workspace_option
@json_option
def run(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    workers: int | None,
    wait: bool,
    no_cache: bool,
    forced: tuple[str, ...],
    from_nodes: tuple[str, ...],
    to_nodes: tuple[str, ...],
    only: str | None,
    workspace_dir: str | None,
    as_json: bool,
) -> int:
    """Run the pipeline NAME (configs/NAME.yaml, or a path to a config).

    With --from, --to or --only a part of the graph runs; what it needs from the rest is
    taken from the newest run that has it.
    """
    if only and (from_nodes or to_nodes):
        raise click.UsageError("--only cannot be used with --from or --to.")
    request = Request(
        name=name,
        profile=profile,
        overrides=overrides,
        workspace_dir=workspace_dir,
        command=shlex.join(["sluice", *sys.argv[1:]]),
        workers=workers or default_workers(),
        wait=wait,
        use_cache=not no_cache,
        forced=forced,
        from_nodes=(only,) if only else from_nodes,
        to_nodes=(only,) if only else to_nodes,
    )
    try:
        record = _run(request, make_console(to_stderr=as_json))
    except (Exception, KeyboardInterrupt) as error:
        if as_json:
            refused = not_run(request.name, request.command, error)
            click.echo(json.dumps(refused.to_dict()))
        raise
    if as_json:
        click.echo(json.dumps(record.to_dict()))
    return record.exit_code or 0


def _run(request: Request, console: Console) -> RunRecord:
    """Checks what can be checked without TensorFlow, then runs and reports."""
    config = load_config(
        request.name, profile=request.profile, overrides=request.overrides
    )
    activate(config.root)
    valid = validate_config(config)
    config = valid.config
    for warning in valid.warnings:
        console.print(plain(f"warning: {warning}", "yellow"))
    check_inputs(config, hint=_data_hint(config))
    workspace = workspace_of(config, request.workspace_dir)
    workspace.prepare()

    def on_wait(owner: str) -> None:
        console.print(plain(f"waiting for {owner}", "yellow"), soft_wrap=True)

    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(
            request.command, wait=request.wait, on_wait=on_wait
        ) as lock,
    ):
        notes = [lock.note] if lock.note else []
        notes += check_metadata(workspace)
        for run_id in complete_killed_runs(workspace, locked=True):
            notes.append(f"run {run_id} was killed; its record is complete now")
        record = _run_locked(
            request, config, workspace, lock.descriptor, notes, console
        )
    predict = predict_command(config, request.name, request.workspace_dir)
    report(record, predict, console)
    return record


def _run_locked(
    request: Request,
    config: Config,
    workspace: Workspace,
    lock: int,
    notes: list[str],
    console: Console,
) -> RunRecord:
    serving_dir = serving_dir_of(config, request.workspace_dir)
    digests = FileDigests(workspace.root / "state" / "file_digests.json")
    stop = StopRequest()
    last = None
    if request.whole and last_complete.exists(workspace):
        # Before the zygote starts to import: this may be all there is to do.
        inputs = run_inputs(config, workspace.root, serving_dir, digests)
        last = last_complete.still_stands(workspace, inputs)
    run_id = workspace.new_run_id()
    run_dir = workspace.run_dir(run_id)
    run_dir.mkdir(parents=True)
    write_stored_config(config, run_dir / "config.json")
    record = RunRecord(run_id, config.name, utc_now(), request.command, notes=notes)
    record.config = plain_config(config)
    console.print(plain(f"{config.name}  run {run_id}", "bold"))
    recorder = RecordRun(record, run_dir, serving_dir)
    recorder.apply(
        {
            "event": "run_started",
            "command": request.command,
            "workers": request.workers,
            "use_cache": request.use_cache,
            "forced": list(request.forced),
            "from_nodes": list(request.from_nodes),
            "to_nodes": list(request.to_nodes),
            "resume_command": resume_command(
                request.name, request.workspace_dir, run_id
            ),
        }
    )
    if last is not None:
        digests.save()
        _note_inputs(record, run_dir, inputs)
        recorder.close_unchanged(last)
        console.print(plain(f"nothing has changed since run {last.run_id}", "cyan"))
        return record
    start_log = run_dir / "logs" / "start.log"
    with (
        stop.listen(),
        Nursery(start_log, cwd=config.root, keep_open=[lock]) as nursery,
    ):
        try:
            # While the zygote imports TFX.
            inputs = run_inputs(config, workspace.root, serving_dir, digests)
        except SluiceError as error:
            recorder.stop(error)
            return record
        digests.save()
        _note_inputs(record, run_dir, inputs)
        carry_out(
            _plan(request, config, workspace, run_dir),
            nursery,
            recorder,
            console,
            stop,
        )
    keep_copy(workspace)
    if request.whole:
        last_complete.remember(workspace, record, inputs)
    return record


def _plan(
    request: Request, config: Config, workspace: Workspace, run_dir: Path
) -> Plan:
    return Plan(
        run_dir=run_dir,
        surroundings=Surroundings(project_root=str(config.root)),
        workers=request.workers,
        workspace=workspace.root,
        use_cache=request.use_cache,
        forced=request.forced,
        from_nodes=request.from_nodes,
        to_nodes=request.to_nodes,
        retries=retries_of(config),
    )


def retries_of(config: Config) -> Retries:
    """Returns the config's retries as the runner takes them."""
    given = config.retries
    return Retries(given.default, given.nodes, given.backoff_s)


def _note_inputs(record: RunRecord, run_dir: Path, inputs: RunInputs) -> None:
    atomic.write_json(run_dir / INPUTS_FILE, inputs.to_dict())
    record.digests = inputs.summary()
    record.packages = inputs.packages


def _data_hint(config: Config) -> str | None:
    """Names the command that makes the data, if it is one of the sample sets."""
    for name in catalog.names():
        if config.data_dir == config.root / "data" / name:
            return f"sluice data make {name}"
    return None
