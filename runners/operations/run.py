"""Operation: runs a pipeline from its config and returns the record."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import dataclass, replace
from functools import partial

from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.staleness import check_staleness
from pipeline.config.config import Config
from pipeline.config.serialize import plain_config, write_stored_config
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.custom_nodes import selected_nodes
from pipeline.graph.node_registry import INGESTION
from pipeline.graph.validate_graph import check_node_ids, validate_pipeline
from pipeline.training.strategy.choice import check_paths, find_tpu
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs
from runners.engine import Engine, Observer
from runners.local.stop_request import StopRequest
from runners.local.write_report import repeat_report
from runners.operations.lock_workspace import (
    LockedWorkspace,
    lock_workspace,
    prepare_store,
)
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.prepared_run import PreparedRun, record_inputs
from runners.operations.run_lifecycle import (
    engine_or_local,
    execute,
    finish_run,
    make_plan,
    suggest_predict,
)
from runners.operations.validate import check_strategy
from sluice.errors import UsageError, bounded
from sluice.machine_resources import usable_cores
from sluice.project import activate
from sluice.record.events import RunStarted
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.workspace import private_umask

# A subset of what MLflow allows.
_TAG_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}")
_MAX_TAG_VALUE = 500


@dataclass(frozen=True, kw_only=True)
class RunRequest(PipelineRequest):
    """Request to run a pipeline or a part of it.

    Attributes:
      command: the command line or the caller, for the record.
      workers: number of nodes to run in parallel; None for one per core.
      wait: whether to wait for another run to end.
      use_cache: whether nodes may take their outputs from the cache.
      forced: nodes that run even if they are cached.
      from_nodes: run these and what is downstream of them; empty for all.
      to_nodes: run these and what is upstream of them; empty for all.
      accept_data: the reason for overriding the data gate once; None to keep it.
      tags: ``KEY=VALUE``, or ``KEY`` for an empty value.
    """

    command: str = "runners.operations.run"
    workers: int | None = None
    wait: bool = False
    use_cache: bool = True
    forced: tuple[str, ...] = ()
    from_nodes: tuple[str, ...] = ()
    to_nodes: tuple[str, ...] = ()
    accept_data: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the run may end at once if nothing has changed since the last."""
        special = self.forced or self.from_nodes or self.to_nodes or self.accept_data
        return self.use_cache and not special


def run(
    request: RunRequest,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Runs a pipeline or a part of it.

    Checks everything that needs no TensorFlow before the run begins. Starts no node if
    nothing has changed since the last complete run.

    Returns:
      The record, also of a run that has failed, was stopped by a gate, or was
      interrupted by SIGINT (its ``status`` is then ``interrupted``).

    Raises:
      UsageError: the request, the config or the data is wrong.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    with engine_or_local(engine) as chosen:
        here = chosen.capabilities.this_machine
        prepared = check_request(request, observer, on_this_machine=here)
        config, workspace = prepared.config, prepared.workspace
        locking = lock_workspace(workspace, request.command, request.wait, observer)
        with private_umask(config.private), locking as locked:
            prepared = choose_spans_after_wait(request, prepared)
            inputs, last = _find_unchanged_run(request, prepared)
            recorder = begin_record(
                request,
                prepared,
                locked,
                observer,
                can_resume=chosen.capabilities.resume,
            )
            if last is not None:
                record_inputs(recorder, prepared, inputs)
                recorder.end_unchanged(last)
                repeat_report(recorder, last)
                observer.on_note(f"nothing has changed since run {last.run_id}")
            else:
                locks = (locked.lock.descriptor,)
                workers = recorder.run_started.workers
                plan = make_plan(recorder, prepared, workers=workers, locks=locks)
                record_now = partial(record_inputs, recorder, prepared)
                execute(plan, recorder, chosen, observer, record_now)
                finish_run(recorder, prepared)
    name, given = request.name, request.workspace_dir
    suggest_predict(recorder, prepared, name, given, observer)
    return recorder.record


def check_request(
    request: RunRequest, observer: Observer, *, on_this_machine: bool = False
) -> PreparedRun:
    """Checks config, schema, code, data and nodes, and prepares the workspace.

    The strategy of the training is checked too if the nodes run ``on_this_machine``.

    Raises:
      UsageError: one of them is wrong.
      WorkspaceError: the workspace cannot be written.
    """
    _parse_tags(request.tags)
    stop = StopRequest()
    # pydantic turns a KeyboardInterrupt that is raised inside it into a panic.
    with stop.listen():
        config = request.load_config()
        activate(config.root)
        valid = validate_pipeline(config)
        named = (*request.forced, *request.from_nodes, *request.to_nodes)
        check_node_ids(config, named)
    if stop.signal:
        signal.raise_signal(stop.signal)
    config = valid.config
    selected = selected_nodes(config, request.from_nodes, request.to_nodes)
    if not selected:
        raise UsageError(
            "no node is selected",
            where=config.name,
            expected="--from NODE upstream of --to NODE, or the same",
            actual=f"no path from {', '.join(request.from_nodes)} to "
            + ", ".join(request.to_nodes),
            hint=request.next_command("graph", request.name),
        )
    for warning in valid.warnings:
        observer.on_warning(warning)
    choice = _choose(config)
    workspace = request.workspace_of(config)
    if "Trainer" in selected:
        if on_this_machine:
            check_strategy(config)
        may_be_tpu = config.train.strategy in ("auto", "tpu")
        tpu = find_tpu() if may_be_tpu and not config.train.replicas else None
        if tpu is not None:
            check_paths(tpu, [str(workspace.root)])
    workspace.prepare(private=config.private)
    return PreparedRun(config, choice, workspace, request.serving_dir_of(config))


def choose_spans_after_wait(request: RunRequest, prepared: PreparedRun) -> PreparedRun:
    """Returns the run with spans chosen anew, if it may have waited for another run.

    Raises:
      UsageError, DataError: there are none, or they are too old.
    """
    config = prepared.config
    return replace(prepared, choice=_choose(config)) if request.wait else prepared


def begin_record(
    request: RunRequest,
    prepared: PreparedRun,
    locked: LockedWorkspace,
    observer: Observer,
    *,
    run_id: str | None = None,
    can_resume: bool = True,
) -> Recorder:
    """Makes the folder of a new run with its config, and begins its record."""
    config, workspace = prepared.config, prepared.workspace
    run_id = run_id or workspace.new_run_id()
    run_dir = workspace.run_dir(run_id)
    run_dir.mkdir(parents=True)
    write_stored_config(config, run_dir / "config.json")
    selected = selected_nodes(config, request.from_nodes, request.to_nodes)
    window = prepared.choice.data
    is_read = INGESTION in selected
    recorder = Recorder(run_dir, observer.on_event)
    resume = request.next_command("resume", request.name, "--run", run_id)
    event = RunStarted(
        run_id=run_id,
        pipeline=config.name,
        command=request.command,
        destination=prepared.serving_dir,
        config=plain_config(config),
        workers=request.workers or usable_cores(),
        use_cache=request.use_cache,
        forced=request.forced,
        from_nodes=request.from_nodes,
        to_nodes=request.to_nodes,
        accept_data=request.accept_data,
        resume_command=resume if can_resume else None,
        tags=_parse_tags(request.tags),
        notes=(
            *locked.notes_for(run_id),
            *bounded(window.skipped_lines if is_read else ()),
        ),
    )
    recorder.apply(event)
    if window.spans and is_read:
        names = bounded([str(span) for span in window.spans[::-1]])
        observer.on_note(f"data: {', '.join(names)}")
    return recorder


def _parse_tags(tags: tuple[str, ...]) -> dict[str, str]:
    """Returns tags by key."""
    found: dict[str, str] = {}
    for tag in tags:
        key, _, value = tag.partition("=")
        is_text = len(value) <= _MAX_TAG_VALUE and value.isprintable()
        if not (_TAG_KEY.fullmatch(key) and is_text):
            raise UsageError(
                "this is not a tag",
                expected="KEY or KEY=VALUE; a key of at most 100 letters, digits and "
                f"_ . / -, a value of at most {_MAX_TAG_VALUE} printable ones",
                actual=tag if len(tag) <= _MAX_TAG_VALUE else f"{tag[:80]}...",
            )
        if key in found:
            raise UsageError(f"the tag {key!r} is given twice", actual=", ".join(tags))
        found[key] = value
    return found


def _find_unchanged_run(
    request: RunRequest, prepared: PreparedRun
) -> tuple[RunInputs | None, RunRecord | None]:
    """Returns the inputs, and the last complete run if nothing has changed since."""
    config, workspace = prepared.config, prepared.workspace
    inputs = last = None
    if request.whole and up_to_date.exists(workspace):
        inputs = prepared.read_inputs()
        last = up_to_date.still_stands(workspace, inputs)
    if last is None:
        prepare_store(prepared.serving_dir, config, workspace, request.to_nodes)
    return inputs, last


def _choose(config: Config) -> SpanChoice:
    choice = choose_spans(config)
    check_staleness(choice.data, config.validate_data.stale_after_h, time.time())
    return choice
