"""What ``sluice run`` and ``resume`` share: the run itself, seen and recorded."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from rich.console import Console

from pipeline.check_inputs import check_inputs
from pipeline.config import Config
from runners.cli.console import plain
from runners.cli.run_view import RunView
from runners.cli.verdict_table import verdict_table
from runners.local.execute import Plan, execute
from runners.local.nursery import Nursery
from runners.local.record_run import RecordRun
from runners.local.scheduler import Watch
from runners.local.stop_request import StopRequest
from sluice.errors import ExitCode, SluiceError, WorkspaceError
from sluice.run_record import ErrorRecord, RunRecord
from sluice.workspace import utc_now


def carry_out(
    plan: Plan,
    nursery: Nursery,
    recorder: RecordRun,
    console: Console,
    stop: StopRequest,
) -> RunRecord:
    """Runs the nodes, shows them, and closes the record.

    Raises:
      WorkspaceError: the record cannot be written, such as on a full disk.
    """
    record = recorder.record
    with RunView(console, record) as view:

        def on_event(event: dict) -> None:
            recorder.apply(event)
            view.on_event(event)

        try:
            try:
                watch = Watch(on_event, view.on_progress, view.tick, stop)
                execute(plan, nursery, watch)
                recorder.close(stop.exit_code, stop.reason)
            except SluiceError as error:
                recorder.stop(error)
        except OSError as error:
            raise WorkspaceError(
                "the run's record could not be written",
                where=plan.run_dir,
                actual=error.strerror or str(error),
                hint="free some space, then: sluice resume",
            ) from error
        view.tick()
    return record


def report(record: RunRecord, predict: str, console: Console) -> None:
    """Prints the gates, where the model went, and what to do next."""
    for gate in record.gates:
        console.print()
        console.print(verdict_table(gate))
    console.print()
    for note in record.notes:
        console.print(plain(f"note: {note}", "yellow"), soft_wrap=True)
    if record.error:
        console.print(plain(record.error.message, "red"), soft_wrap=True)
        for line in record.error.log_tail:
            console.print(plain(f"  | {line}", "dim"), soft_wrap=True)
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
        text = f"go on:   {record.resume_command}   (nodes that have finished stay)"
        console.print(plain(text), soft_wrap=True)
    if push.uri:
        console.print(plain(f"ask it:  {predict}"), soft_wrap=True)


def not_run(name: str, command: str, error: BaseException) -> RunRecord:
    """Returns the record of a run that was refused before it began, or broke."""
    code = ExitCode.BUG
    if isinstance(error, SluiceError):
        code = error.exit_code
    elif isinstance(error, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    return RunRecord(
        run_id="",
        pipeline=Path(name).stem,
        started_at=utc_now(),
        command=command,
        status="interrupted" if code == ExitCode.INTERRUPTED else "failed",
        exit_code=int(code),
        ended_at=utc_now(),
        error=ErrorRecord(None, str(error) or type(error).__name__, None),
    )


def predict_command(config: Config, name: str, workspace_dir: str | None) -> str:
    """Returns a command that asks the pushed model about files that exist."""
    split = "test" if config.data.splits.test else "eval"
    example = check_inputs(config)[split][0]
    if Path.cwd() in example.parents:
        example = example.relative_to(Path.cwd())
    words = [program(), "predict", name, str(example), "--limit", "5"]
    words += _workspace_words(workspace_dir)
    for override in config.origin.overrides:
        if override.startswith("push."):
            words += ["--set", override]
    return shlex.join(words)


def resume_command(name: str, workspace_dir: str | None, run_id: str) -> str:
    """Returns the command that continues a run."""
    words = [program(), "resume", name, "--run", run_id]
    return shlex.join([*words, *_workspace_words(workspace_dir)])


def program() -> str:
    """Returns how ``sluice`` was called, so that its commands can be copied."""
    called = Path(sys.argv[0])
    installed = called.name == "sluice" and called.parent != Path()
    return str(called) if installed else "sluice"


def default_workers() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _workspace_words(workspace_dir: str | None) -> list[str]:
    return ["--workspace", workspace_dir] if workspace_dir else []
