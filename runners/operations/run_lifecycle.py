"""Executes a run with an engine: its plan, its execution and its end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from runners.cache import up_to_date
from runners.engine import Engine, MemoryLimits, Observer, Plan
from runners.local.engine import LocalEngine
from runners.local.write_report import prewarm, write_report
from runners.metadata.metadata_file import keep_copy
from runners.operations.predict import predict_command
from runners.operations.prepared_run import (
    PreparedRun,
    changes_since_base,
    ingested_data,
    record_late_spans,
    stored_inputs,
)
from sluice.errors import (
    ExitCode,
    NodeError,
    SluiceError,
    WorkspaceError,
)
from sluice.record.events import Note
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord

_SIGINT = "interrupted by SIGINT"


@contextmanager
def engine_or_local(engine: Engine | None) -> Iterator[Engine]:
    """Yields the engine, or a local one that is closed at the end of the block."""
    with nullcontext(engine) if engine is not None else LocalEngine() as chosen:
        yield chosen


def make_plan(
    recorder: Recorder,
    prepared: PreparedRun,
    *,
    workers: int,
    locks: tuple[int, ...],
    resumed: bool = False,
) -> Plan:
    """Returns the plan of a run."""
    begun, memory = recorder.run_started, prepared.config.memory_mb
    return Plan(
        run_dir=recorder.run_dir,
        workers=workers,
        project_root=prepared.config.root,
        workspace=prepared.workspace.root,
        use_cache=begun.use_cache,
        forced=begun.forced,
        from_nodes=begun.from_nodes,
        to_nodes=begun.to_nodes,
        accept_data=begun.accept_data,
        retries=prepared.config.retries,
        memory=MemoryLimits(memory.default, memory.nodes, in_config=True),
        resumed=resumed,
        spans=prepared.choice,
        locks=locks,
    )


def execute(
    plan: Plan,
    recorder: Recorder,
    engine: Engine,
    observer: Observer,
    while_prewarming: Callable[[], None] = lambda: None,
) -> RunRecord:
    """Executes a run that has begun.

    ``while_prewarming`` is called while the engine starts; its error ends the run.

    Returns:
      The record, closed, also where the engine has raised.

    Raises:
      WorkspaceError: the record cannot be written, such as on a full disk, or the
        workspace was deleted.
    """
    if plan.project_root:
        engine.prewarm(plan.project_root)
    try:
        while_prewarming()
        prewarm()
    except SluiceError as error:
        recorder.stop(error)
        return recorder.record
    except KeyboardInterrupt:
        recorder.end(ExitCode.INTERRUPTED, _SIGINT)
        return recorder.record
    _run(engine, plan, recorder, observer)
    return recorder.refresh()


def _run(engine: Engine, plan: Plan, recorder: Recorder, observer: Observer) -> None:
    """Runs a plan with an engine, and closes the record if the engine has not."""
    name = type(engine).__name__
    try:
        engine.run(plan, observer)
        if engine.capabilities.detached:
            return
        error: SluiceError = NodeError(f"{name} has left the record of its run open")
    except WorkspaceError:
        raise
    except SluiceError as raised:
        error = raised
    except KeyboardInterrupt:
        if recorder.refresh().status == "running":
            if not engine.capabilities.cancel:
                text = f"{name} cannot stop its nodes: those that ran may still run"
                recorder.apply(Note(text=text))
            recorder.end(ExitCode.INTERRUPTED, _SIGINT)
    except Exception as raised:
        if recorder.refresh().status != "running":
            raise
        log = recorder.run_dir / "logs" / "start.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("a") as file:
            traceback.print_exc(file=file)
        error = NodeError(f"{name} failed: {type(raised).__name__}: {raised}")
    if recorder.refresh().status == "running":
        recorder.stop(error)


def finish_run(recorder: Recorder, prepared: PreparedRun) -> None:
    """Adds notes to a closed record, and its page; stores a complete run as the last.

    The workspace is still locked.
    """
    begun, record = recorder.run_started, recorder.refresh()
    keep_copy(prepared.workspace)
    notes = _note_on_accepted_data(recorder)
    if begun.from_nodes or begun.to_nodes:
        notes += changes_since_base(recorder, prepared.workspace)
    for text in notes:
        # A resumed run may have it already.
        if text not in record.notes:
            recorder.apply(Note(text=text))
    record_late_spans(recorder)
    write_report(recorder)
    whole = begun.use_cache and not (
        begun.forced or begun.from_nodes or begun.to_nodes or begun.accept_data
    )
    if not whole or record.exit_code != 0:
        return
    # Inputs that were edited or deleted during the run are for the next run to report.
    with suppress(SluiceError, OSError):
        inputs = prepared.read_inputs()
        if inputs.to_dict() == stored_inputs(recorder.run_dir):
            up_to_date.remember(prepared.workspace, record, inputs)


def suggest_predict(
    recorder: Recorder,
    prepared: PreparedRun,
    name: str,
    workspace_dir: str | None,
    observer: Observer,
) -> None:
    """Passes an observer the command that predicts with the model of a run."""
    if any(push.uri for push in recorder.record.pushes):
        window = ingested_data(recorder, prepared)
        command = predict_command(prepared.config, name, window, workspace_dir)
        if command is not None:
            observer.on_command("predict", command)


def _note_on_accepted_data(recorder: Recorder) -> list[str]:
    """Returns a note on whether ``--accept-data`` has overridden the data gate."""
    record, graph = recorder.record, recorder.graph
    if recorder.run_started.accept_data is None or graph is None:
        return []
    judges = {node.id: node.action for node in graph.nodes if node.judges_data}
    judged = any(node.id in judges and node.outputs for node in record.nodes)
    gate = next((item for item in record.gates if item["gate"] == "data"), None)
    if "run" not in judges.values():
        names = ", ".join(judges)
        return [f"--accept-data had no effect: {names} is not in the part asked for"]
    if not judged or gate is None:
        return []
    if gate["override"] is not None:
        return [f"the data was accepted by hand: {gate['override']}"]
    return ["--accept-data was not needed: the data passes by itself"]
