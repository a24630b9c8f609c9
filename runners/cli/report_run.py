"""Output and exit code of ``sluice run`` and ``resume``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from runners.cli.console import ignore_broken_pipe, make_console
from runners.cli.render_run import print_outcome
from runners.cli.run_view import RunView
from runners.cli.say import say_json
from runners.engine import Observer
from sluice.errors import ExitCode, SluiceError
from sluice.record.run_record import ErrorRecord, RunRecord
from sluice.workspace import utc_now


def report_run(
    as_json: bool, name: str, command: str, operate: Callable[[Observer], RunRecord]
) -> int:
    """Runs an operation and returns the exit code of the record that comes of it.

    Args:
      as_json: whether the record goes to stdout, also that of a refused run, and what
        is for people to stderr.
      name: of the pipeline, as it was given.
      command: as it was typed.
      operate: runs the pipeline, and tells it to the observer.
    """
    console = make_console(to_stderr=as_json)
    try:
        with RunView(console) as view:
            record = operate(view)
    except (Exception, KeyboardInterrupt) as error:
        if as_json:
            say_json(_not_run(name, command, error).to_dict())
        raise
    predict = view.commands.get("predict")
    show = partial(print_outcome, console, record, predict=predict)
    ignore_broken_pipe(console, show)
    if as_json:
        say_json(record.to_dict())
    return record.exit_code or 0


def _not_run(name: str, command: str, error: BaseException) -> RunRecord:
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
