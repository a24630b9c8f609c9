"""Runs a pipeline as ``sluice run`` was asked to, and says how it went."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from components.tfrecord_gen.spans.window import Window
from pipeline.check_inputs import check_inputs, serving_inputs
from pipeline.config import Config
from pipeline.load_config import load_config
from pipeline.run_inputs import RunInputs, differences, run_inputs
from pipeline.staleness import check_staleness
from pipeline.stored_config import plain_config, write_stored_config
from pipeline.validate_config import validate_config
from runners.cli.carry_out import (
    carry_out,
    hold,
    report,
    say_record,
)
from runners.cli.console import plain
from runners.cli.ends_at_once import ends_at_once
from runners.cli.next_command import next_command
from runners.cli.note_acceptance import note_acceptance
from runners.cli.options import serving_dir_of, workspace_of
from runners.cli.predict_command import predict_command
from runners.cli.quietly import quietly
from runners.local import last_complete
from runners.local.limit_memory import MemoryLimits
from runners.local.metadata_file import keep_copy
from runners.local.plan import Plan
from runners.local.processes.nursery import Nursery
from runners.local.record_run import RecordRun
from runners.local.surroundings import Surroundings
from sample_data import catalog
from serving.model_store import ModelStore
from serving.store_owner import Owner
from sluice.errors import UsageError, bounded
from sluice.files import atomic
from sluice.files.file_digests import FileDigests
from sluice.project import activate
from sluice.retries import Retries
from sluice.run_record import RunRecord
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
      start_nursery: starts the nodes' processes, if they are not on their way.
      lock: the descriptor of the workspace's lock.
      window: the data, as it was found before the run began.
    """

    workspace: Workspace
    start_nursery: Callable[[], Nursery]
    lock: int
    window: Window


def run_pipeline(request: Request, nursery: Nursery | None, as_json: bool) -> int:
    """Runs a pipeline and returns the exit code.

    Args:
      request: what the user asked for.
      nursery: of the nodes' processes, on its way already; None starts one if need be.
      as_json: whether the record goes to stdout, and what is for people to stderr.
    """

    def go(console: Console) -> RunRecord:
        return _run(request, nursery, console)

    return say_record(as_json, request.name, request.command, go)


def _run(request: Request, nursery: Nursery | None, console: Console) -> RunRecord:
    """Checks what can be checked without TensorFlow, then runs and reports."""
    with ends_at_once():
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

    def start_nursery() -> Nursery:
        # One that was started before is ended by who started it.
        return nursery or started.enter_context(Nursery(cwd=config.root))

    with private_umask(config.private), ExitStack() as started, held as (lock, notes):
        passed_over = [
            f"{span.name} was not taken: {span.why}" for span in window.skipped
        ]
        notes += bounded(passed_over)
        place = _Place(workspace, start_nursery, lock, window)
        record = _run_locked(request, config, place, notes, console)
    predict = predict_command(config, request.name)
    quietly(console, report, record, predict, console)
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
    if request.whole and last_complete.exists(workspace):
        # This may be all there is to do.
        inputs = run_inputs(config, workspace.root, serving_dir, digests)
        last = last_complete.still_stands(workspace, inputs)
    if last is None:
        prepare_store(serving_dir, config, workspace, request.to_nodes)
    run_id = workspace.new_run_id()
    run_dir = workspace.run_dir(run_id)
    run_dir.mkdir(parents=True)
    write_stored_config(config, run_dir / "config.json")
    record = RunRecord(run_id, config.name, utc_now(), request.command, notes=notes)
    record.config = plain_config(config)
    header = plain(f"{config.name}  run {run_id}", "bold")
    quietly(console, console.print, header)
    if place.window.spans:
        names = bounded([str(span) for span in place.window.spans[::-1]])
        quietly(console, console.print, plain(f"data: {', '.join(names)}"))
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
        quietly(console, console.print, plain(text, "cyan"))
        return record
    begun: list[RunInputs] = []

    def look_at_inputs() -> None:
        begun.append(run_inputs(config, workspace.root, serving_dir, digests))
        digests.save()
        note_inputs(record, run_dir, begun[0])

    plan = _plan(request, config, workspace, run_dir)
    nursery = place.start_nursery()
    nursery.belong_to(run_dir / "logs" / "start.log", [place.lock])
    carry_out(plan, recorder, console, nursery, look_at_inputs)
    note_acceptance(record, run_dir, request.accept_data)
    keep_copy(workspace)
    if request.from_nodes or request.to_nodes:
        _note_base(record, workspace, run_dir)
    elif request.whole and record.exit_code == 0 and begun:
        # What was edited meanwhile is the next run's.
        ended = run_inputs(config, workspace.root, serving_dir, digests)
        if ended == begun[0]:
            last_complete.remember(workspace, record, ended)
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
        surroundings=Surroundings(project_root=str(config.root)),
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
