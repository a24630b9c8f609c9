"""A run that has begun: its inputs, plan, engine and end."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config
from pipeline.config.validate_secrets import require_secrets
from pipeline.graph.choose_spans import choose_spans
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs, differences, run_inputs
from runners.engine import Engine, MemoryLimits, Observer, Plan
from runners.local.engine import LocalEngine
from runners.metadata.metadata_file import keep_copy
from sluice.errors import (
    ExitCode,
    NodeError,
    SluiceError,
    UsageError,
    WorkspaceError,
)
from sluice.project import activate
from sluice.record.events import InputsRead, Note, RunStarted, SpansChosen
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.storage import atomic
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace

INPUTS_FILE = "inputs.json"
_SIGINT = "interrupted by SIGINT"


@contextmanager
def engine_or_local(engine: Engine | None) -> Iterator[Engine]:
    """Yields the engine, or one of this machine that ends with the block."""
    with nullcontext(engine) if engine is not None else LocalEngine() as chosen:
        yield chosen


@dataclass(frozen=True)
class PreparedRun:
    """What a run is made of, found to be possible.

    Attributes:
      config: validated.
      choice: the spans and files of the run.
      workspace: prepared.
      serving_dir: where the model goes.
    """

    config: Config
    choice: SpanChoice
    workspace: Workspace
    serving_dir: Path

    def read_inputs(self) -> RunInputs:
        """Returns digests of it all, as it is now; remembers those of files."""
        digests = FileDigests(self.workspace.digests_file)
        root, serving_dir = self.workspace.root, self.serving_dir
        found = run_inputs(self.config, root, serving_dir, self.choice, digests)
        digests.save()
        return found


def load_prepared_run(workspace: Workspace, recorder: Recorder) -> PreparedRun:
    """Returns what a run was made of when it began, in the project as it is now.

    Its code can be imported from now on. Spans that were not chosen then are chosen.

    Raises:
      FileNotFoundError: `sluice gc` has dropped its config.
      UsageError: an environment variable that its config refers to is not set.
    """
    run_dir = recorder.run_dir
    config = read_stored_config(run_dir / "config.json")
    require_secrets(config)
    activate(config.root)
    stored = SpanChoice.load(run_dir)
    choice = stored.restat() if stored else choose_spans(config)
    return PreparedRun(
        config, choice, workspace, Path(started_event(recorder).destination)
    )


def write_inputs(recorder: Recorder, checked: PreparedRun, inputs: RunInputs) -> None:
    """Writes what a run is made of beside its record, and its digests into it."""
    atomic.write_json(recorder.run_dir / INPUTS_FILE, inputs.to_dict())
    recorder.apply(SpansChosen(spans=checked.choice.to_dict()))
    recorder.apply(InputsRead(digests=inputs.summary(), packages=inputs.packages))


def data_used(recorder: Recorder, checked: PreparedRun) -> Window:
    """Returns the data that a run has read, or the run whose outputs it has reused."""
    base = recorder.graph.base_run_id if recorder.graph else None
    reused = SpanChoice.load(checked.workspace.run_dir(base)) if base else None
    return (reused or checked.choice).data


def execute(
    plan: Plan,
    recorder: Recorder,
    engine: Engine,
    observer: Observer,
    look: Callable[[], None] = lambda: None,
) -> RunRecord:
    """Has an engine run what has begun.

    Args:
      plan: what is to be run.
      recorder: of the run, which has begun.
      engine: runs it; it begins what takes long while ``look`` is called.
      observer: follows it.
      look: looks at the inputs. What it raises ends the run.

    Returns:
      The record, closed, also where the engine has raised.

    Raises:
      WorkspaceError: the record cannot be written, such as on a full disk, or the
        workspace was deleted.
    """
    if plan.project_root:
        engine.prewarm(plan.project_root)
    try:
        look()
    except SluiceError as error:
        recorder.stop(error)
        return recorder.record
    except KeyboardInterrupt:
        recorder.end(ExitCode.INTERRUPTED, _SIGINT)
        return recorder.record
    _run(engine, plan, recorder, observer)
    return recorder.refresh()


def _run(engine: Engine, plan: Plan, recorder: Recorder, observer: Observer) -> None:
    """Has an engine run a plan; the record is closed whatever the engine does.

    Raises:
      WorkspaceError: the record cannot be written.
    """
    name = type(engine).__name__
    try:
        engine.run(plan, observer)
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


def make_plan(
    asked: RunStarted,
    checked: PreparedRun,
    *,
    workers: int,
    locks: tuple[int, ...],
    resumed: bool = False,
) -> Plan:
    """Returns the plan of a run.

    Args:
      asked: how it was begun.
      checked: what it is made of.
      workers: how many nodes run at the same time.
      locks: descriptors that each of its processes holds open.
      resumed: whether it was executed before.
    """
    memory = checked.config.memory_mb
    return Plan(
        run_dir=checked.workspace.run_dir(asked.run_id),
        workers=workers,
        project_root=checked.config.root,
        workspace=checked.workspace.root,
        use_cache=asked.use_cache,
        forced=asked.forced,
        from_nodes=asked.from_nodes,
        to_nodes=asked.to_nodes,
        accept_data=asked.accept_data,
        retries=checked.config.retries,
        memory=MemoryLimits(memory.default, memory.nodes, in_config=True),
        resumed=resumed,
        spans=checked.choice,
        locks=locks,
    )


def started_event(recorder: Recorder) -> RunStarted:
    """Returns the event that says how a run was begun.

    Raises:
      JournalError: the journal has lost it.
    """
    recorder.refresh()
    return recorder.begun


def check_unchanged(run_dir: Path, now: RunInputs, *, run: str, run_again: str) -> bool:
    """Whether it is known what a run was made of when it began.

    Args:
      run_dir: of the run.
      now: what it would be made of now.
      run: a command that begins a new one.
      run_again: the same, with a word on why.

    Raises:
      UsageError: that has changed since.
    """
    stored = run_dir / INPUTS_FILE
    if not stored.exists():
        if not RunRecord.load(run_dir).nodes:
            # Stopped before its first node.
            return False
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: its inputs are not known",
            where=stored,
            hint=run,
        )
    before = json.loads(stored.read_text())
    parts = ("schema", "code", "data", "packages")
    if changed := differences(before, now.to_dict(), parts):
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: its inputs have changed since",
            where=run_dir,
            examples=changed,
            hint=run_again,
        )
    return True


def finish_run(
    recorder: Recorder, checked: PreparedRun, inputs: RunInputs | None
) -> None:
    """Notes what was special about a run, and remembers it if it is complete.

    Args:
      recorder: of the run, which is closed.
      checked: what it is made of; its workspace is still locked.
      inputs: digests of that when it began; None if it did not come so far.
    """
    asked, record = started_event(recorder), recorder.record
    _note_acceptance(recorder, asked.accept_data)
    keep_copy(checked.workspace)
    if asked.from_nodes or asked.to_nodes:
        _note_base(recorder, checked.workspace)
    whole = asked.use_cache and not (
        asked.forced or asked.from_nodes or asked.to_nodes or asked.accept_data
    )
    if not whole or record.exit_code != 0 or inputs is None:
        return
    # What was edited, or has gone, meanwhile is the next run's matter.
    with suppress(SluiceError, OSError):
        if inputs == checked.read_inputs():
            up_to_date.remember(checked.workspace, record, inputs)


def _note_acceptance(recorder: Recorder, reason: str | None) -> None:
    """Notes whether a reason has let data pass that would not have passed by itself.

    Args:
      recorder: of the run, as far as it has come.
      reason: as it was given, None if it was not.
    """
    if reason is None:
        return
    record, graph = recorder.record, recorder.graph
    if graph is None:
        return
    judges = {node.id: node.action for node in graph.nodes if node.judges_data}
    judged = any(node.id in judges and node.outputs for node in record.nodes)
    gate = next((item for item in record.gates if item["gate"] == "data"), None)
    if "run" not in judges.values():
        names = ", ".join(judges)
        text = f"--accept-data had no effect: {names} is not in the part asked for"
    elif not judged or gate is None:
        return
    elif gate["override"] is not None:
        text = f"the data was accepted by hand: {gate['override']}"
    else:
        text = "--accept-data was not needed: the data passes by itself"
    if text not in record.notes:
        recorder.apply(Note(text=text))


def _note_base(recorder: Recorder, workspace: Workspace) -> None:
    """Notes where a part of the graph ran on what is no longer as it is on disk."""
    run_dir, graph = recorder.run_dir, recorder.graph
    if graph is None or graph.base_run_id is None:
        return
    try:
        text = (workspace.run_dir(graph.base_run_id) / INPUTS_FILE).read_text()
        now = json.loads((run_dir / INPUTS_FILE).read_text())
    except OSError:
        return
    before = json.loads(text)
    lines = differences(before, now, ("schema", "code", "data"))
    if any(node.judges_data and node.action == "reuse" for node in graph.nodes):
        lines += [
            f"config: {key}, by which the data was judged"
            for key in ("examples", "validate")
            if before["config"].get(key) != now["config"].get(key)
        ]
    for line in lines:
        text = f"differs from run {graph.base_run_id}, reused: {line}"
        recorder.apply(Note(text=text))
