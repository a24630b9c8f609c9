"""``sluice run NAME``: runs a pipeline on this machine and says how it went."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from pipeline.check_inputs import check_inputs
from pipeline.config import Config
from pipeline.load_config import load_config
from pipeline.stored_config import write_stored_config
from pipeline.validate_config import validate_config
from runners.cli.console import make_console, plain
from runners.cli.options import (
    config_options,
    json_option,
    serving_dir_of,
    workspace_of,
    workspace_option,
)
from runners.cli.run_view import RunView
from runners.cli.verdict_table import verdict_table
from runners.local.record_run import RecordRun
from runners.local.supervise import supervise
from sample_data import catalog
from sluice.errors import ExitCode, SluiceError
from sluice.project import activate
from sluice.run_record import ErrorRecord, RunRecord
from sluice.workspace import new_run_id, utc_now


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was given."""

    name: str
    profile: str | None
    overrides: tuple[str, ...]
    workspace_dir: str | None
    command: str


@click.command()
@config_options
@workspace_option
@json_option
def run(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    workspace_dir: str | None,
    as_json: bool,
) -> int:
    """Run the pipeline NAME (configs/NAME.yaml, or a path to a config)."""
    command = shlex.join(["sluice", *sys.argv[1:]])
    request = Request(name, profile, overrides, workspace_dir, command)
    try:
        record = _run(request, make_console(to_stderr=as_json))
    except (Exception, KeyboardInterrupt) as error:
        if as_json:
            click.echo(json.dumps(_not_run(request, error).to_dict()))
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
    with workspace.exclusive(request.command):
        run_id = new_run_id()
        run_dir = workspace.run_dir(run_id)
        run_dir.mkdir(parents=True)
        write_stored_config(config, run_dir / "config.json")
        record = RunRecord(run_id, config.name, utc_now(), request.command)
        console.print(plain(f"{config.name}  run {run_id}", "bold"))
        serving_dir = serving_dir_of(config, request.workspace_dir)
        recorder = RecordRun(record, run_dir, serving_dir)
        with RunView(console, record) as view:

            def on_event(event: dict) -> None:
                recorder.apply(event)
                view.on_event(event)

            try:
                ending = supervise(
                    config.root,
                    run_dir,
                    workspace,
                    on_event,
                    view.on_progress,
                    view.tick,
                )
            except BaseException:
                recorder.close(reason="was ended because its supervisor failed")
                raise
            recorder.close(ending.exit_code, ending.reason)
            view.tick()
    _report(record, predict_command(config, request), console)
    return record


def _report(record: RunRecord, predict: str, console: Console) -> None:
    """Prints the gates, where the model went, and what to do next."""
    for gate in record.gates:
        console.print()
        console.print(verdict_table(gate))
    console.print()
    if record.error:
        console.print(plain(record.error.message, "red"), soft_wrap=True)
        if record.error.log:
            console.print(plain(f"  log:      {record.error.log}"), soft_wrap=True)
    push = record.pushes[0]
    if push.state == "pushed":
        text = f"pushed as version {push.version}: {push.uri}"
        console.print(plain(text, "green"), soft_wrap=True)
    elif push.state == "already_served":
        text = f"already served as version {push.version}: {push.uri}"
        console.print(plain(text, "cyan"), soft_wrap=True)
    elif push.state == "blocked" and not record.error:
        text = "not pushed: the model has not passed the gate; see the rows marked FAIL"
        console.print(plain(text, "red"))
    if record.resume_command:
        if record.status == "interrupted":
            console.print(plain("interrupted", "red"))
        text = f"go on:   {record.resume_command}   (finished nodes are cached)"
        console.print(plain(text), soft_wrap=True)
    if push.uri:
        console.print(plain(f"ask it:  {predict}"), soft_wrap=True)


def predict_command(config: Config, request: Request) -> str:
    """Returns a command that asks the pushed model about files that exist."""
    split = "test" if config.data.splits.test else "eval"
    example = check_inputs(config)[split][0]
    if Path.cwd() in example.parents:
        example = example.relative_to(Path.cwd())
    program = Path(sys.argv[0])
    installed = program.name == "sluice" and program.parent != Path()
    words = [str(program) if installed else "sluice", "predict", request.name]
    words += [str(example), "--limit", "5"]
    if request.workspace_dir:
        words += ["--workspace", request.workspace_dir]
    for override in request.overrides:
        if override.startswith("push."):
            words += ["--set", override]
    return shlex.join(words)


def _data_hint(config: Config) -> str | None:
    """Names the command that makes the data, if it is one of the sample sets."""
    for name in catalog.names():
        if config.data_dir == config.root / "data" / name:
            return f"sluice data make {name}"
    return None


def _not_run(request: Request, error: BaseException) -> RunRecord:
    """Returns the record of a run that was refused before it began, or broke."""
    code = ExitCode.BUG
    if isinstance(error, SluiceError):
        code = error.exit_code
    elif isinstance(error, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    return RunRecord(
        run_id="",
        pipeline=Path(request.name).stem,
        started_at=utc_now(),
        command=request.command,
        status="interrupted" if code == ExitCode.INTERRUPTED else "failed",
        exit_code=int(code),
        ended_at=utc_now(),
        error=ErrorRecord(None, str(error) or type(error).__name__, None),
    )
