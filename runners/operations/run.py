"""Operation: runs a pipeline, from its config to its record."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from components.tfrecord_gen.spans.span_choice import SpanChoice
from pipeline.config.config import Config
from pipeline.config.serialize import plain_config, write_stored_config
from pipeline.graph.choose_spans import check_staleness, choose_spans
from pipeline.graph.node_registry import INGESTION
from pipeline.graph.validate_graph import check_node_ids, validate_pipeline
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs
from runners.engine import Engine, Observer
from runners.operations.lock_workspace import lock_workspace, prepare_store
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.predict import suggest_predict
from runners.operations.run_lifecycle import (
    PreparedRun,
    data_used,
    engine_or_local,
    execute,
    finish_run,
    make_plan,
    started_event,
    write_inputs,
)
from sample_data import catalog
from sluice.errors import bounded
from sluice.machine_resources import usable_cores
from sluice.project import activate
from sluice.record.events import RunStarted
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.workspace import private_umask


@dataclass(frozen=True, kw_only=True)
class RunRequest(PipelineRequest):
    """What is to be run, and how.

    Attributes:
      command: what was typed or called, for the record.
      workers: how many nodes run at the same time; None for one per core.
      wait: whether to wait for another run to end.
      use_cache: whether outputs of earlier runs may stand for a node.
      forced: nodes that run even so.
      from_nodes: only what follows from these runs; empty for all.
      to_nodes: only what leads to these runs; empty for all.
      accept_data: why the data passes this once, whatever the data gate finds.
    """

    command: str = "runners.operations.run"
    workers: int | None = None
    wait: bool = False
    use_cache: bool = True
    forced: tuple[str, ...] = ()
    from_nodes: tuple[str, ...] = ()
    to_nodes: tuple[str, ...] = ()
    accept_data: str | None = None

    @property
    def whole(self) -> bool:
        """Whether an unchanged pipeline has nothing to do."""
        asked = self.forced or self.from_nodes or self.to_nodes or self.accept_data
        return self.use_cache and not asked


def run(
    request: RunRequest,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Runs a pipeline, or what of it was asked for.

    What can be checked without TensorFlow is checked before the run begins. Where
    nothing has changed since a complete run, no node is started.

    Args:
      request: what to run.
      observer: follows it; None for nobody.
      engine: executes it; None for processes of this machine.

    Returns:
      The record, also of a run that has failed or was stopped by a gate.

    Raises:
      UsageError: the request, the config or the data is wrong.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    with engine_or_local(engine) as chosen:
        checked = check_request(request, observer)
        config, workspace = checked.config, checked.workspace
        holding = lock_workspace(workspace, request.command, request.wait, observer)
        with private_umask(config.private), holding as held:
            checked = choose_again(request, checked)
            inputs, last = _look_for_changes(request, checked)
            recorder = begin_record(
                request,
                checked,
                held.notes,
                observer,
                can_resume=chosen.capabilities.resume,
            )
            if last is not None and inputs is not None:
                write_inputs(recorder, checked, inputs)
                recorder.end_unchanged(last)
                observer.on_note(f"nothing has changed since run {last.run_id}")
                record = recorder.record
            else:
                locks = (held.lock.descriptor,)
                record = _execute(checked, recorder, locks, chosen, observer)
    window, given = data_used(recorder, checked), request.workspace_dir
    suggest_predict(record, config, request.name, given, window, observer)
    return record


def check_request(request: RunRequest, observer: Observer) -> PreparedRun:
    """Checks config, schema, code and data, and prepares the workspace.

    Raises:
      UsageError: one of them is wrong.
      WorkspaceError: the workspace cannot be written.
    """
    with _sigint_deferred():
        config = request.load_config()
        activate(config.root)
        valid = validate_pipeline(config)
        asked = (*request.forced, *request.from_nodes, *request.to_nodes)
        check_node_ids(config, asked)
    config = valid.config
    for warning in valid.warnings:
        observer.on_warning(warning)
    choice = _choose(config)
    workspace = request.workspace_of(config)
    workspace.prepare(private=config.private)
    return PreparedRun(config, choice, workspace, request.serving_dir_of(config))


def choose_again(request: RunRequest, checked: PreparedRun) -> PreparedRun:
    """Returns what was checked with the spans of now, if the run may have waited.

    Raises:
      UsageError, DataError: there are none, or they are too old.
    """
    config = checked.config
    return replace(checked, choice=_choose(config)) if request.wait else checked


def begin_record(
    request: RunRequest,
    checked: PreparedRun,
    notes: tuple[str, ...],
    observer: Observer,
    *,
    run_id: str | None = None,
    can_resume: bool = True,
) -> Recorder:
    """Makes the folder of a new run, with its config and a record that has begun."""
    config, workspace = checked.config, checked.workspace
    run_id = run_id or workspace.new_run_id()
    run_dir = workspace.run_dir(run_id)
    run_dir.mkdir(parents=True)
    write_stored_config(config, run_dir / "config.json")
    # Other parts of the graph read the data of an earlier run.
    reads_data = not request.from_nodes or INGESTION in request.from_nodes
    window = checked.choice.data
    recorder = Recorder(run_dir, observer.on_event)
    event = RunStarted(
        run_id=run_id,
        pipeline=config.name,
        command=request.command,
        destination=str(checked.serving_dir),
        config=plain_config(config),
        workers=request.workers or usable_cores(),
        use_cache=request.use_cache,
        forced=request.forced,
        from_nodes=request.from_nodes,
        to_nodes=request.to_nodes,
        accept_data=request.accept_data,
        resume_command=request.next_command("resume", request.name, "--run", run_id)
        if can_resume
        else None,
        notes=(*notes, *bounded(window.skipped_lines if reads_data else ())),
    )
    recorder.apply(event)
    if window.spans and reads_data:
        names = bounded([str(span) for span in window.spans[::-1]])
        observer.on_note(f"data: {', '.join(names)}")
    return recorder


def _look_for_changes(
    request: RunRequest, checked: PreparedRun
) -> tuple[RunInputs | None, RunRecord | None]:
    """Returns what the run is made of and the run that still stands, if it may.

    Raises:
      UsageError: there is something to do, and its model could not be pushed.
    """
    config, workspace = checked.config, checked.workspace
    inputs = last = None
    if request.whole and up_to_date.exists(workspace):
        inputs = checked.read_inputs()
        last = up_to_date.still_stands(workspace, inputs)
    if last is None:
        prepare_store(checked.serving_dir, config, workspace, request.to_nodes)
    return inputs, last


def _execute(
    checked: PreparedRun,
    recorder: Recorder,
    locks: tuple[int, ...],
    engine: Engine,
    observer: Observer,
) -> RunRecord:
    asked = started_event(recorder)
    plan = make_plan(asked, checked, workers=asked.workers, locks=locks)
    begun: list[RunInputs] = []

    def look_at_inputs() -> None:
        begun.append(checked.read_inputs())
        write_inputs(recorder, checked, begun[0])

    execute(plan, recorder, engine, observer, look_at_inputs)
    finish_run(recorder, checked, begun[0] if begun else None)
    return recorder.record


def _choose(config: Config) -> SpanChoice:
    choice = choose_spans(config, hint=_data_hint(config))
    check_staleness(choice.data, config.validate_data.stale_after_h, time.time())
    return choice


def _data_hint(config: Config) -> str | None:
    """Names the command that makes the data, if it is one of the sample sets."""
    for name in catalog.names():
        if config.data_dir == config.root / "data" / name:
            return f"sluice data make {name}"
    return None


@contextmanager
def _sigint_deferred() -> Iterator[None]:
    """Holds a Ctrl-C back until the block is left.

    pydantic turns a ``KeyboardInterrupt`` that is raised inside it into a panic.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
