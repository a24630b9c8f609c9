"""Runs a pipeline as ``sluice run`` was asked to, and says how it went."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.config.serialize import plain_config, write_stored_config
from pipeline.config.validate import validate_config
from pipeline.graph.check_inputs import check_inputs, serving_inputs
from pipeline.graph.staleness import check_staleness
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs, differences, run_inputs
from runners.cli.console import plain
from runners.cli.execute_run import (
    execute_run,
    hold,
    say_record,
)
from runners.cli.exit_on_sigint import exit_on_sigint
from runners.cli.ignore_broken_pipe import ignore_broken_pipe
from runners.cli.next_command import next_command
from runners.cli.note_acceptance import note_acceptance
from runners.cli.options import serving_dir_of, workspace_of
from runners.cli.predict_command import predict_command
from runners.cli.render_run import print_outcome
from runners.local.job_environment import JobEnvironment
from runners.local.limit_memory import MemoryLimits
from runners.local.plan import Plan
from runners.local.processes.process_pool import ProcessPool
from runners.local.record_run import RecordRun
from runners.metadata.metadata_file import keep_copy
from sample_data import catalog
from serving.model_store import ModelStore
from serving.store_owner import Owner
from sluice.errors import UsageError, bounded
from sluice.project import activate
from sluice.record.run_record import RunRecord
from sluice.retries import Retries
from sluice.storage import atomic
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace, private_umask, utc_now

INPUTS_FILE = "inputs.json"


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was given."""

    name: str
    profile: str | None
    overrides: tuple[str, ...]
    workspace_dir: str | None
    command: str
    workers: int
    wait: bool
    use_cache: bool
    forced: tuple[str, ...]
    from_nodes: tuple[str, ...]
    to_nodes: tuple[str, ...]
    accept_data: str | None = None

    @property
    def whole(self) -> bool:
        """Whether an unchanged pipeline has nothing to do."""
        asked = self.forced or self.from_nodes or self.to_nodes or self.accept_data
        return self.use_cache and not asked


@dataclass(frozen=True)
class _Place:
    """Where a run happens.

    Attributes:
      workspace: of the pipeline, locked.
      start_process_pool: starts the nodes' processes, if they are not on their way.
      lock: the descriptor of the workspace's lock.
      window: the data, as it was found before the run began.
    """

    workspace: Workspace
    start_process_pool: Callable[[], ProcessPool]
    lock: int
    window: Window


def run_pipeline(
    request: Request, process_pool: ProcessPool | None, as_json: bool
) -> int:
    """Runs a pipeline and returns the exit code.

    Args:
      request: what the user asked for.
      process_pool: that is starting already; None starts one if need be.
      as_json: whether the record goes to stdout, and what is for people to stderr.
    """

    def go(console: Console) -> RunRecord:
        return _run(request, process_pool, console)

    return say_record(as_json, request.name, request.command, go)


def _run(
    request: Request, process_pool: ProcessPool | None, console: Console
) -> RunRecord:
    """Checks what can be checked without TensorFlow, then runs and reports."""
    with exit_on_sigint():
        config = load_config(
            request.name, profile=request.profile, overrides=request.overrides
        )
        activate(config.root)
        valid = validate_config(config)
    config = valid.config
    for warning in valid.warnings:
        console.print(plain(f"warning: {warning}", "yellow"))
    window = check_inputs(config, hint=_data_hint(config))
    serving_inputs(config)
    check_staleness(window, config.validate_data.stale_after_h, time.time())
    workspace = workspace_of(config, request.workspace_dir)
    workspace.prepare(private=config.private)
    held = hold(workspace, request.command, request.wait, console)

    def start_process_pool() -> ProcessPool:
        # One that was started before is ended by who started it.
        return process_pool or started.enter_context(ProcessPool(cwd=config.root))

    with private_umask(config.private), ExitStack() as started, held as (lock, notes):
        passed_over = [
            f"{span.name} was not taken: {span.why}" for span in window.skipped
        ]
        notes += bounded(passed_over)
        place = _Place(workspace, start_process_pool, lock, window)
        record = _run_locked(request, config, place, notes, console)
    predict = predict_command(config, request.name)
    show = partial(print_outcome, console, record, predict=predict)
    ignore_broken_pipe(console, show)
    return record


def _run_locked(
    request: Request,
    config: Config,
    place: _Place,
    notes: list[str],
    console: Console,
) -> RunRecord:
    workspace = place.workspace
    serving_dir = serving_dir_of(config, request.workspace_dir)
    digests = FileDigests(workspace.digests_file)
    last = None
    if request.whole and up_to_date.exists(workspace):
        # This may be all there is to do.
        inputs = run_inputs(config, workspace.root, serving_dir, digests)
        last = up_to_date.still_stands(workspace, inputs)
    if last is None:
        prepare_store(serving_dir, config, workspace, request.to_nodes)
    run_id = workspace.new_run_id()
    run_dir = workspace.run_dir(run_id)
    run_dir.mkdir(parents=True)
    write_stored_config(config, run_dir / "config.json")
    record = RunRecord(run_id, config.name, utc_now(), request.command, notes=notes)
    record.config = plain_config(config)
    header = plain(f"{config.name}  run {run_id}", "bold")
    ignore_broken_pipe(console, console.print, header)
    if place.window.spans:
        names = bounded([str(span) for span in place.window.spans[::-1]])
        ignore_broken_pipe(console, console.print, plain(f"data: {', '.join(names)}"))
    recorder = RecordRun(record, run_dir, serving_dir)
    recorder.apply(
        {
            "event": "run_started",
            "command": request.command,
            "workers": request.workers,
            "use_cache": request.use_cache,
            "forced": list(request.forced),
            "from_nodes": list(request.from_nodes),
            "to_nodes": list(request.to_nodes),
            "accept_data": request.accept_data,
            "resume_command": next_command("resume", request.name, "--run", run_id),
        }
    )
    if last is not None:
        digests.save()
        note_inputs(record, run_dir, inputs)
        recorder.close_unchanged(last)
        text = f"nothing has changed since run {last.run_id}"
        ignore_broken_pipe(console, console.print, plain(text, "cyan"))
        return record
    begun: list[RunInputs] = []

    def look_at_inputs() -> None:
        begun.append(run_inputs(config, workspace.root, serving_dir, digests))
        digests.save()
        note_inputs(record, run_dir, begun[0])

    plan = _plan(request, config, workspace, run_dir)
    process_pool = place.start_process_pool()
    process_pool.belong_to(run_dir / "logs" / "start.log", [place.lock])
    execute_run(plan, recorder, console, process_pool, look_at_inputs)
    note_acceptance(record, run_dir, request.accept_data)
    keep_copy(workspace)
    if request.from_nodes or request.to_nodes:
        _note_base(record, workspace, run_dir)
    elif request.whole and record.exit_code == 0 and begun:
        # What was edited meanwhile is the next run's.
        ended = run_inputs(config, workspace.root, serving_dir, digests)
        if ended == begun[0]:
            up_to_date.remember(workspace, record, ended)
    return record


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
    if to_nodes and "Pusher" not in to_nodes:
        return
    for own in workspace.folders:
        if serving_dir.resolve().is_relative_to(own.resolve()):
            raise UsageError(
                "push.serving_dir is in a folder that the runs of this pipeline use.",
                where=serving_dir,
                expected=f"a directory outside of {own}",
            )
    ModelStore(serving_dir).prepare(Owner(config.name, workspace.id))


def _note_base(record: RunRecord, workspace: Workspace, run_dir: Path) -> None:
    """Notes where a part of the graph ran on what is no longer as it is on disk."""
    from runners.local.graph_file import GraphFile

    graph = GraphFile.load(run_dir)
    if graph is None or graph.base_run_id is None:
        return
    try:
        text = (workspace.run_dir(graph.base_run_id) / INPUTS_FILE).read_text()
        now = json.loads((run_dir / INPUTS_FILE).read_text())
    except OSError:
        return
    before = json.loads(text)
    lines = differences(before, now, ("schema", "code", "data"))
    if any(
        node.kind == "DataVerdict" and node.action == "reuse" for node in graph.nodes
    ):
        lines += [
            f"config: {key}, by which the data was judged"
            for key in ("examples", "validate")
            if before["config"].get(key) != now["config"].get(key)
        ]
    for line in lines:
        record.notes.append(f"differs from run {graph.base_run_id}, reused: {line}")
    record.save(run_dir)


def _plan(
    request: Request, config: Config, workspace: Workspace, run_dir: Path
) -> Plan:
    return Plan(
        run_dir=run_dir,
        job_environment=JobEnvironment(project_root=str(config.root)),
        workers=request.workers,
        workspace=workspace.root,
        use_cache=request.use_cache,
        forced=request.forced,
        from_nodes=request.from_nodes,
        to_nodes=request.to_nodes,
        accept_data=request.accept_data,
        retries=retries_of(config),
        memory=memory_of(config),
    )


def retries_of(config: Config) -> Retries:
    """Returns the config's retries as the runner takes them."""
    given = config.retries
    return Retries(given.default, given.nodes, given.backoff_s)


def memory_of(config: Config) -> MemoryLimits:
    """Returns the config's limits of memory as the runner takes them."""
    given = config.memory_mb
    return MemoryLimits(given.default, given.nodes, in_config=True)


def note_inputs(record: RunRecord, run_dir: Path, inputs: RunInputs) -> None:
    """Writes what a run is made of beside its record, and its digests into it."""
    atomic.write_json(run_dir / INPUTS_FILE, inputs.to_dict())
    record.digests = inputs.summary()
    record.packages = inputs.packages


def _data_hint(config: Config) -> str | None:
    """Names the command that makes the data, if it is one of the sample sets."""
    for name in catalog.names():
        if config.data_dir == config.root / "data" / name:
            return f"sluice data make {name}"
    return None
