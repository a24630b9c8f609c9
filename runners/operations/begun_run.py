"""What the operations on a run share: its lock, its inputs, its plan, its notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from components.tfrecord_gen.spans.span_choice import SpanChoice
from pipeline.config.config import Config
from pipeline.graph.nodes import PUSHER
from pipeline.graph.own_nodes import leads_to
from runners.cache.run_inputs import RunInputs, run_inputs
from runners.engine import Engine, MemoryLimits, Observer, Plan
from runners.local.complete_runs import complete_killed_runs
from runners.local.engine import LocalEngine
from runners.metadata.metadata_file import check_metadata
from serving.model_store import ModelStore
from serving.store_owner import Owner
from sluice.errors import ExitCode, SluiceError, UsageError
from sluice.record.events import InputsRead, Note
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.retries import Retries
from sluice.storage import atomic
from sluice.storage.stat_cache import FileDigests
from sluice.storage.storage_errors import explain_full_disk
from sluice.workspace import Workspace

INPUTS_FILE = "inputs.json"


@dataclass(frozen=True)
class Held:
    """A workspace that is this process's own for a while.

    Attributes:
      descriptor: of the lock; whoever holds it open holds the lock.
      notes: what was found and put in order, for the record.
    """

    descriptor: int
    notes: tuple[str, ...]


@contextmanager
def hold_workspace(
    workspace: Workspace, command: str, wait: bool, observer: Observer
) -> Iterator[Held]:
    """Holds the pipeline's lock, and puts in order what a killed run has left.

    Raises:
      LockedError: another run is in progress.
      WorkspaceError: the metadata is damaged, or the disk is full.
    """

    def on_wait(owner: str) -> None:
        observer.on_note(f"waiting for {owner}")

    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(command, wait=wait, on_wait=on_wait) as lock,
    ):
        workspace.ensure_id()
        notes = [lock.note] if lock.note else []
        notes += check_metadata(workspace)
        for run_id in complete_killed_runs(workspace, locked=True):
            notes.append(f"run {run_id} was killed; its record is complete now")
        yield Held(lock.descriptor, tuple(notes))


@contextmanager
def engine_or_local(engine: Engine | None) -> Iterator[Engine]:
    """Yields the engine, or one of this machine that ends with the block."""
    with nullcontext(engine) if engine is not None else LocalEngine() as chosen:
        yield chosen


def prepare_store(
    serving_dir: Path, config: Config, workspace: Workspace, to_nodes: Sequence[str]
) -> None:
    """Finds before a run what would stop its push; see ``ModelStore.prepare``.

    Args:
      serving_dir: where the model goes.
      config: of the pipeline.
      workspace: locked.
      to_nodes: where the run ends; empty if that is at the push.

    Raises:
      UsageError: nothing can be pushed there.
    """
    if to_nodes and not leads_to(config, PUSHER, to_nodes):
        return
    for own in workspace.folders:
        if serving_dir.resolve().is_relative_to(own.resolve()):
            raise UsageError(
                "push.serving_dir is in a folder that the runs of this pipeline use.",
                where=serving_dir,
                expected=f"a directory outside of {own}",
            )
    ModelStore(serving_dir).prepare(Owner(config.name, workspace.id))


def read_inputs(
    config: Config, workspace: Workspace, serving_dir: Path, choice: SpanChoice
) -> RunInputs:
    """Returns what a run is made of, as it is now; remembers the digests of files."""
    digests = FileDigests(workspace.digests_file)
    found = run_inputs(config, workspace.root, serving_dir, choice, digests)
    digests.save()
    return found


def write_inputs(recorder: Recorder, inputs: RunInputs) -> None:
    """Writes what a run is made of beside its record, and its digests into it."""
    atomic.write_json(recorder.run_dir / INPUTS_FILE, inputs.to_dict())
    recorder.apply(InputsRead(digests=inputs.summary(), packages=inputs.packages))


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
      The record, closed.

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
        recorder.end(ExitCode.INTERRUPTED, "interrupted by SIGINT")
        return recorder.record
    engine.run(plan, observer)
    return recorder.refresh()


def retries_of(config: Config) -> Retries:
    """Returns the config's retries as an engine takes them."""
    return config.retries


def memory_of(config: Config) -> MemoryLimits:
    """Returns the config's limits of memory as an engine takes them."""
    given = config.memory_mb
    return MemoryLimits(given.default, given.nodes, in_config=True)


def note_acceptance(recorder: Recorder, reason: str | None) -> None:
    """Notes whether a reason has let data pass that would not have passed by itself.

    Args:
      recorder: of the run, as far as it has come.
      reason: as it was given, None if it was not.
    """
    # ML Metadata's client, which a run with nothing to do does without.
    from runners.local.graph_file import GraphFile

    graph = GraphFile.load(recorder.run_dir) if reason else None
    if graph is None:
        return
    record = recorder.record
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
