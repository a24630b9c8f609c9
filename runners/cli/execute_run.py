"""What ``sluice run`` and ``resume`` share: the run itself, seen and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from runners.cli.console import make_console, plain
from runners.cli.ignore_broken_pipe import ignore_broken_pipe
from runners.cli.run_view import RunView
from runners.cli.say import say_json
from runners.local.complete_runs import complete_killed_runs
from runners.local.plan import Plan
from runners.local.processes.process_pool import ProcessPool, start_method
from runners.local.record_run import RecordRun
from runners.local.stop_request import StopRequest
from runners.metadata.metadata_file import check_metadata
from sluice.errors import ExitCode, SluiceError, WorkspaceError
from sluice.record.run_record import ErrorRecord, RunRecord
from sluice.storage.full_disk import explain_full_disk
from sluice.workspace import Workspace, check_not_deleted, utc_now


@contextmanager
def hold(
    workspace: Workspace, command: str, wait: bool, console: Console
) -> Iterator[tuple[int, list[str]]]:
    """Holds the pipeline's lock, and puts in order what a killed run has left.

    Yields:
      The lock's descriptor, and notes for the record.

    Raises:
      LockedError: another run is in progress.
      WorkspaceError: the metadata is damaged, or the disk is full.
      UsageError: SLUICE_START_METHOD is neither fork nor spawn.
    """
    start_method()

    def on_wait(owner: str) -> None:
        console.print(plain(f"waiting for {owner}", "yellow"), soft_wrap=True)

    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(command, wait=wait, on_wait=on_wait) as lock,
    ):
        workspace.ensure_id()
        notes = [lock.note] if lock.note else []
        notes += check_metadata(workspace)
        for run_id in complete_killed_runs(workspace, locked=True):
            notes.append(f"run {run_id} was killed; its record is complete now")
        yield lock.descriptor, notes


def execute_run(
    plan: Plan,
    recorder: RecordRun,
    console: Console,
    process_pool: ProcessPool,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Runs the nodes, shows them, and closes the record.

    Args:
      plan: what is to be run.
      recorder: of the run, which has begun.
      console: for people.
      process_pool: of the nodes' processes; it belongs to this run.
      meanwhile: called once while TFX is imported.

    Raises:
      WorkspaceError: the record cannot be written, such as on a full disk, or the
        workspace was deleted.
    """
    try:
        meanwhile()
    except SluiceError as error:
        recorder.stop(error)
        return
    except KeyboardInterrupt:
        recorder.close(ExitCode.INTERRUPTED, "interrupted by SIGINT")
        return
    try:
        _carry_out(plan, process_pool, recorder, console)
    except OSError as error:
        check_not_deleted(plan.run_dir / "config.json")
        raise WorkspaceError(
            "the run's record could not be written",
            where=plan.run_dir,
            actual=error.strerror or str(error),
            hint="free some space, then: sluice resume",
        ) from error


def _carry_out(
    plan: Plan, process_pool: ProcessPool, recorder: RecordRun, console: Console
) -> None:
    stop = StopRequest()
    view = RunView(console, recorder.record)

    def on_event(event: dict) -> None:
        recorder.apply(event)
        ignore_broken_pipe(console, view.on_event, event)

    def on_progress(node: str, facts: dict) -> None:
        recorder.keep_progress(node, facts)
        ignore_broken_pipe(console, view.on_progress, node, facts)

    def on_tick() -> None:
        recorder.tick()
        ignore_broken_pipe(console, view.tick)

    ignore_broken_pipe(console, view.__enter__)
    try:
        with stop.listen():
            # ML Metadata's client, which a run with nothing to do does without.
            from runners.local.execute import execute
            from runners.local.scheduler import Watch

            try:
                execute(plan, process_pool, Watch(on_event, on_progress, on_tick, stop))
                recorder.close(stop.exit_code, stop.reason)
            except SluiceError as error:
                recorder.stop(error)
            on_tick()
    finally:
        ignore_broken_pipe(console, view.__exit__, None, None, None)


def say_record(
    as_json: bool, name: str, command: str, go: Callable[[Console], RunRecord]
) -> int:
    """Runs ``go`` and returns the exit code of the record that comes of it.

    Args:
      as_json: whether the record goes to stdout, also that of a refused run, and what
        is for people to stderr.
      name: of the pipeline, as it was given.
      command: as it was typed.
      go: runs the pipeline, and shows it on the console that it is given.
    """
    try:
        record = go(make_console(to_stderr=as_json))
    except (Exception, KeyboardInterrupt) as error:
        if as_json:
            say_json(_not_run(name, command, error).to_dict())
        raise
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
