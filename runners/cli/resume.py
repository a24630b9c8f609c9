"""``sluice resume [NAME]``: goes on with a run that was not finished."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from pipeline.config import Config
from pipeline.run_inputs import RunInputs, differences, run_inputs
from pipeline.stored_config import read_stored_config
from runners.cli.carry_out import (
    carry_out,
    default_workers,
    not_run,
    predict_command,
    program,
    report,
    resume_command,
)
from runners.cli.console import make_console, plain
from runners.cli.find_run import find_run, newest_run
from runners.cli.options import json_option, workspace_option
from runners.cli.run import INPUTS_FILE, retries_of
from runners.local import last_complete
from runners.local.complete_runs import complete_killed_runs
from runners.local.execute import Plan
from runners.local.journal import Journal
from runners.local.metadata_file import check_metadata, keep_copy
from runners.local.nursery import Nursery
from runners.local.record_run import RecordRun
from runners.local.stop_request import StopRequest
from runners.local.surroundings import Surroundings
from sluice.errors import UsageError
from sluice.file_digests import FileDigests
from sluice.full_disk import explain_full_disk
from sluice.project import activate
from sluice.run_record import RunRecord
from sluice.workspace import Workspace

_RESUMABLE = ("failed", "interrupted")


@dataclass(frozen=True)
class _Request:
    """What the user asked for."""

    name: str | None
    run_id: str | None
    workspace_dir: str | None
    command: str
    workers: int
    wait: bool


@click.command()
@click.argument("name", required=False)
@click.option("run_id", "--run", metavar="ID", help="Which run; default: the last.")
@click.option("--workers", type=click.IntRange(min=1), help="As for run.")
@click.option("--wait", is_flag=True, help="Wait for another run to end.")
@workspace_option
@json_option
def resume(
    name: str | None,
    run_id: str | None,
    workers: int | None,
    wait: bool,
    workspace_dir: str | None,
    as_json: bool,
) -> int:
    """Go on with the last failed, killed or interrupted run, of NAME or of any.

    Nodes that have finished stay as they are. The run keeps its id and its config;
    where code, schema or data have changed since, only a new run can tell the truth.
    """
    request = _Request(
        name=name,
        run_id=run_id,
        workspace_dir=workspace_dir,
        command=shlex.join(["sluice", *sys.argv[1:]]),
        workers=workers or default_workers(),
        wait=wait,
    )
    try:
        record = _resume(request, make_console(to_stderr=as_json))
    except (Exception, KeyboardInterrupt) as error:
        if as_json:
            refused = not_run(name or "", request.command, error)
            click.echo(json.dumps(refused.to_dict()))
        raise
    if as_json:
        click.echo(json.dumps(record.to_dict()))
    return record.exit_code or 0


def _resume(request: _Request, console: Console) -> RunRecord:
    if request.name is None:
        workspace, name = newest_run(request.workspace_dir, _RESUMABLE)
    else:
        name = request.name
        workspace = find_run(name, request.workspace_dir).workspace

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
        complete_killed_runs(workspace, locked=True)
        record = _resumable(workspace, name, request.run_id)
        record.notes += [note for note in notes if note not in record.notes]
        config = _stored_config(workspace.run_dir(record.run_id), name)
        inputs = _check_unchanged(record, config, workspace, name)
        run_dir = workspace.run_dir(record.run_id)
        recorder = RecordRun(record, run_dir, Path(record.pushes[0].destination))
        recorder.apply(
            {
                "event": "run_resumed",
                "command": request.command,
                "workers": request.workers,
                "resume_command": resume_command(
                    name, request.workspace_dir, record.run_id
                ),
            }
        )
        _carry_on(
            recorder, config, workspace, lock.descriptor, request.workers, console
        )
        if _is_whole(run_dir):
            last_complete.remember(workspace, record, inputs)
    report(record, predict_command(config, name, request.workspace_dir), console)
    return record


def _stored_config(run_dir: Path, name: str) -> Config:
    try:
        return read_stored_config(run_dir / "config.json")
    except FileNotFoundError as error:
        raise UsageError(
            f"run {run_dir.name} cannot go on: `sluice gc` has dropped it",
            where=run_dir,
            hint=f"{program()} run {name}",
        ) from error


def _resumable(workspace: Workspace, name: str, run_id: str | None) -> RunRecord:
    """Returns the run to go on with.

    Raises:
      UsageError: there is none, or the one that was named has ended.
    """
    if run_id is not None:
        record = find_run(name, workspace=workspace, run_id=run_id).record
        if record.status not in _RESUMABLE:
            raise UsageError(
                f"run {run_id} cannot be resumed: it has {_ended(record)}",
                where=workspace.run_dir(run_id),
                hint=f"{program()} run {name}",
            )
        return record
    for candidate in reversed(workspace.run_ids()):
        record = find_run(name, workspace=workspace, run_id=candidate).record
        if record.status in _RESUMABLE:
            return record
        if record.status == "nothing_to_do":
            continue
        raise UsageError(
            f"there is no run of {name} to go on with: the last one has "
            + _ended(record),
            where=workspace.run_dir(candidate),
            hint=f"{program()} run {name}",
        )
    raise UsageError(
        f"{name} has not run yet", where=workspace.root, hint=f"{program()} run {name}"
    )


def _ended(record: RunRecord) -> str:
    return {
        "succeeded": "succeeded",
        "nothing_to_do": "had nothing to do",
        "blocked": "been stopped by a gate, which the same data and code stop again",
    }.get(record.status, record.status)


def _check_unchanged(
    record: RunRecord, config: Config, workspace: Workspace, name: str
) -> RunInputs:
    """Returns what the run is made of.

    Raises:
      UsageError: that has changed since the run began.
    """
    run_dir = workspace.run_dir(record.run_id)
    activate(config.root)
    stored = run_dir / INPUTS_FILE
    digests = FileDigests(workspace.root / "state" / "file_digests.json")
    serving_dir = Path(record.pushes[0].destination)
    now = run_inputs(config, workspace.root, serving_dir, digests)
    digests.save()
    before = json.loads(stored.read_text()) if stored.exists() else now.to_dict()
    parts = ("schema", "code", "data", "packages")
    if changed := differences(before, now.to_dict(), parts):
        raise UsageError(
            f"run {record.run_id} cannot go on: what it is made of has changed since",
            where=run_dir,
            examples=changed,
            hint=f"{program()} run {name}   (its cache skips what has finished and "
            "is the same)",
        )
    return now


def _is_whole(run_dir: Path) -> bool:
    """Whether the run was asked for without options that make it do more or less."""
    asked = Journal(run_dir).events()[0]
    part = asked["forced"] or asked["from_nodes"] or asked["to_nodes"]
    return asked["use_cache"] and not part


def _carry_on(
    recorder: RecordRun,
    config: Config,
    workspace: Workspace,
    lock: int,
    workers: int,
    console: Console,
) -> None:
    record = recorder.record
    run_dir = workspace.run_dir(record.run_id)
    console.print(plain(f"{config.name}  resuming run {record.run_id}", "bold"))
    stop = StopRequest()
    start_log = run_dir / "logs" / "start.log"
    with (
        stop.listen(),
        Nursery(start_log, cwd=config.root, keep_open=[lock]) as nursery,
    ):
        asked = Journal(run_dir).events()[0]
        plan = Plan(
            run_dir=run_dir,
            surroundings=Surroundings(project_root=str(config.root)),
            workers=workers,
            workspace=workspace.root,
            use_cache=asked["use_cache"],
            forced=tuple(asked["forced"]),
            from_nodes=tuple(asked["from_nodes"]),
            to_nodes=tuple(asked["to_nodes"]),
            retries=retries_of(config),
            resumed=True,
        )
        carry_out(plan, nursery, recorder, console, stop)
    keep_copy(workspace)
