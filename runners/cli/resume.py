"""``sluice resume [NAME]``: goes on with a run that was not finished."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs, differences, run_inputs
from runners.cli.console import plain
from runners.cli.execute_run import (
    execute_run,
    hold,
    say_record,
)
from runners.cli.ignore_broken_pipe import ignore_broken_pipe
from runners.cli.next_command import next_command
from runners.cli.note_acceptance import note_acceptance
from runners.cli.options import json_option, workspace_option
from runners.cli.predict_command import predict_command
from runners.cli.render_run import print_outcome
from runners.cli.run_pipeline import (
    INPUTS_FILE,
    memory_of,
    note_inputs,
    prepare_store,
    retries_of,
)
from runners.cli.say import say_warning
from runners.local.graph_file import GraphFile
from runners.local.job_environment import JobEnvironment
from runners.local.plan import Plan
from runners.local.processes.process_pool import ProcessPool
from runners.local.record_run import RecordRun
from runners.metadata.metadata_file import keep_copy
from runners.operations.find_run import (
    RESUMABLE,
    find_run,
    last_real_run,
    newest_resumable,
)
from sluice.errors import UsageError
from sluice.machine_resources import usable_cores
from sluice.project import activate
from sluice.record.journal import Journal
from sluice.record.run_record import RunRecord
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace, private_umask


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
        workers=workers or usable_cores(),
        wait=wait,
    )
    go = partial(_resume, request)
    return say_record(as_json, name or "", request.command, go)


def _resume(request: _Request, console: Console) -> RunRecord:
    if request.name is None:
        workspace, name = newest_resumable(request.workspace_dir, say_warning)
    else:
        name = request.name
        workspace = find_run(name, request.workspace_dir, warn=say_warning).workspace

    held = hold(workspace, request.command, request.wait, console)
    with held as (lock, notes), ExitStack() as written:
        record = _resumable(workspace, name, request.run_id)
        record.notes += [note for note in notes if note not in record.notes]
        run_dir = workspace.run_dir(record.run_id)
        config = _stored_config(run_dir, name)
        written.enter_context(private_umask(config.private))
        inputs = _check_unchanged(record, config, workspace, name)
        asked = _asked(run_dir, name)
        serving_dir = Path(record.pushes[0].destination)
        prepare_store(serving_dir, config, workspace, asked["to_nodes"])
        recorder = RecordRun(record, run_dir, serving_dir)
        recorder.apply(
            {
                "event": "run_resumed",
                "command": request.command,
                "workers": request.workers,
                "resume_command": next_command("resume", name, "--run", record.run_id),
            }
        )
        text = f"{config.name}  resuming run {record.run_id}"
        ignore_broken_pipe(console, console.print, plain(text, "bold"))
        plan = _plan(run_dir, config, workspace, asked, request.workers)
        log = run_dir / "logs" / "start.log"
        with ProcessPool(log, cwd=config.root, keep_open=[lock]) as process_pool:
            execute_run(plan, recorder, console, process_pool)
        note_acceptance(record, run_dir, plan.accept_data)
        keep_copy(workspace)
        if _is_whole(asked) and inputs == _inputs_now(record, config, workspace):
            up_to_date.remember(workspace, record, inputs)
    predict = predict_command(config, name)
    show = partial(print_outcome, console, record, predict=predict)
    ignore_broken_pipe(console, show)
    return record


def _stored_config(run_dir: Path, name: str) -> Config:
    try:
        return read_stored_config(run_dir / "config.json")
    except FileNotFoundError as error:
        raise UsageError(
            f"run {run_dir.name} cannot go on: `sluice gc` has dropped it",
            where=run_dir,
            hint=next_command("run", name),
        ) from error


def _resumable(workspace: Workspace, name: str, run_id: str | None) -> RunRecord:
    """Returns the run to go on with: the last one that was more than a look.

    An older one is never: its gates compared with what was served then.

    Raises:
      UsageError: there is none, it has ended, or another one was named.
    """
    record = last_real_run(workspace, say_warning)
    hint = next_command("run", name)
    if record is None:
        raise UsageError(f"{name} has not run yet", where=workspace.root, hint=hint)
    if run_id is not None:
        named = find_run(name, workspace=workspace, run_id=run_id).record
        if named.run_id != record.run_id:
            raise UsageError(
                f"run {named.run_id} cannot be resumed: {record.run_id} has run since, "
                "and its gates would compare with what was served before that",
                where=workspace.run_dir(named.run_id),
                hint=f"{hint}   (its cache skips what has finished and is the same)",
            )
    if record.status not in RESUMABLE:
        raise UsageError(
            f"there is no run of {name} to go on with: the last one has "
            + _ended(record),
            where=workspace.run_dir(record.run_id),
            hint=hint,
        )
    return record


def _ended(record: RunRecord) -> str:
    return {
        "succeeded": "succeeded",
        "up_to_date": "had nothing to do",
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
    stored = run_dir / INPUTS_FILE
    now = _inputs_now(record, config, workspace)
    if not stored.exists():
        if GraphFile.load(run_dir) is not None:
            raise UsageError(
                f"run {record.run_id} cannot go on: what it was made of is not known",
                where=stored,
                hint=next_command("run", name),
            )
        # Stopped before its first node.
        note_inputs(record, run_dir, now)
    before = json.loads(stored.read_text())
    parts = ("schema", "code", "data", "packages")
    if changed := differences(before, now.to_dict(), parts):
        raise UsageError(
            f"run {record.run_id} cannot go on: what it is made of has changed since",
            where=run_dir,
            examples=changed,
            hint=next_command("run", name)
            + "   (its cache skips what has finished and is the same)",
        )
    return now


def _inputs_now(record: RunRecord, config: Config, workspace: Workspace) -> RunInputs:
    activate(config.root)
    digests = FileDigests(workspace.digests_file)
    serving_dir = Path(record.pushes[0].destination)
    found = run_inputs(config, workspace.root, serving_dir, digests)
    digests.save()
    return found


def _asked(run_dir: Path, name: str) -> dict[str, Any]:
    """Returns the event that says how the run was begun.

    Raises:
      UsageError: the journal does not have it.
    """
    for event in Journal(run_dir).events():
        if event["event"] == "run_started":
            return event
    raise UsageError(
        f"run {run_dir.name} cannot go on: its journal is damaged",
        where=run_dir / "journal.jsonl",
        expected="a line on how the run was begun",
        hint=f"{next_command('run', name)}   (its cache skips what has finished)",
    )


def _is_whole(asked: dict[str, Any]) -> bool:
    """Whether the run was asked for without options that make it do more or less."""
    part = asked["forced"] or asked["from_nodes"] or asked["to_nodes"]
    return asked["use_cache"] and not part and not asked.get("accept_data")


def _plan(
    run_dir: Path,
    config: Config,
    workspace: Workspace,
    asked: dict[str, Any],
    workers: int,
) -> Plan:
    return Plan(
        run_dir=run_dir,
        job_environment=JobEnvironment(project_root=str(config.root)),
        workers=workers,
        workspace=workspace.root,
        use_cache=asked["use_cache"],
        forced=tuple(asked["forced"]),
        from_nodes=tuple(asked["from_nodes"]),
        to_nodes=tuple(asked["to_nodes"]),
        accept_data=asked.get("accept_data"),
        retries=retries_of(config),
        memory=memory_of(config),
        resumed=True,
    )
