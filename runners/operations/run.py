"""Operation: runs a pipeline from its config and returns the record."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace

from components.tfrecord_gen.input_files import SpanChoice, check_staleness
from pipeline.checks.before_run import check_before_run
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.custom_nodes import selected_nodes
from pipeline.graph.node_registry import (
    INGESTION,
    MODEL_VERDICT,
    SERVING_CHECK,
)
from pipeline.training.strategy.cluster import join_as_chief
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs
from runners.engine import Engine, Observer, Plan
from runners.local.engine import LocalEngine
from runners.local.write_report import write_report
from runners.metadata.metadata_file import check_metadata
from runners.operations.find_run import resume_command, serving_dir_of, workspace_of
from runners.operations.notify import notify
from runners.operations.prepared_run import (
    PreparedRun,
    lock_workspace,
    stored_inputs,
)
from sluice.errors import ExitCode, SluiceError, UsageError, bounded
from sluice.record.run_record import RunOptions, RunRecord
from sluice.workspace import private_umask

_TAG = re.compile(r"(?P<key>[A-Za-z0-9_./-]+)(=(?P<value>.*))?")


def run(
    config: Config,
    options: RunOptions,
    *,
    command: str = "runners.operations.run",
    tags: Sequence[str] = (),
    wait: bool = False,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Runs a pipeline, or a part of it.

    Checks everything that needs no TensorFlow before the run begins. Starts no node if
    nothing has changed since the last complete run.

    Args:
      config: of the pipeline.
      options: of the run.
      command: the command line or the caller, for the record.
      tags: ``KEY=VALUE``, or ``KEY`` for an empty value.
      wait: whether to wait for another run to end.
      observer: of the run.
      engine: None for processes of this machine.

    Returns:
      The record, also of a run that has failed, was stopped by a gate, or was
      interrupted by SIGINT (its ``status`` is then ``interrupted``).

    Raises:
      UsageError: the options, the config or the data are wrong, or this is a worker of
        a cluster.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the metadata is lost, or the disk is full.
    """
    observer = observer or Observer()
    join_as_chief()
    tag_values = parse_tags(tags)
    config = check_before_run(
        config,
        asked=options.forced,
        to_nodes=options.to_nodes,
        on_this_machine=True,
        on_warning=observer.on_warning,
    )
    if options.trial:
        options = _until_model_gate(config, options)
    nodes = selected_nodes(config, options.to_nodes)
    prepared = prepare_run(config, serving_dir_of(config))
    workspace = prepared.workspace
    locking = lock_workspace(workspace, command, wait, observer)
    with private_umask(config.private), locking:
        if wait:  # Newer spans may have come meanwhile.
            prepared = replace(prepared, choice=_choose(config))
        inputs, last = None, None
        if options.is_whole and workspace.complete_file.exists():
            inputs = prepared.read_inputs()
            last = up_to_date.still_stands(workspace, inputs)
        if last is None:
            prepared.prepare_store(options.to_nodes)
        # Also before a part of the graph: what it writes would be taken for a history.
        pushed_to = (prepared.serving_dir, workspace.serving)
        notes = check_metadata(workspace, pushed_to, options.without_baseline)
        record = prepared.begin(options, command, tag_values)
        record.notes += notes
        observer.on_begin(record)
        if last is not None:
            record.end_unchanged(last)
            record.save(workspace.run_dir(record.run_id))
            observer.on_note(f"nothing has changed since run {last.run_id}")
            notify(config.notify, workspace, record)
            return record
        prepared.save(record)
        if INGESTION in nodes and prepared.choice.data.spans:
            names = [str(span) for span in prepared.choice.data.spans[::-1]]
            observer.on_note(f"data: {', '.join(bounded(names))}")
        execute(prepared, record, engine, observer, inputs)
    return record


def _until_model_gate(config: Config, options: RunOptions) -> RunOptions:
    """Returns the options of a trial that ends with the model gate, or earlier.

    The serving check runs beside it; with exports it would need a blessing.
    """
    ends = [MODEL_VERDICT]
    if config.serving_check and not config.export:
        ends.append(SERVING_CHECK)
    late = {*options.to_nodes}.difference(selected_nodes(config, ends))
    if late:
        what = (
            f"a trial ends with {' and '.join(ends)}: --to takes them or nodes before"
        )
        raise UsageError(what, where=f"--to {min(late)}")
    return replace(options, to_nodes=options.to_nodes or ends)


def prepare_run(config: Config, serving_dir: str) -> PreparedRun:
    """Chooses the spans of a run, and prepares its workspace.

    Raises:
      UsageError, DataError: there are none, or they are too old.
      WorkspaceError: the workspace cannot be written.
    """
    choice, workspace = _choose(config), workspace_of(config)
    workspace.prepare(private=config.private)
    return PreparedRun(config, choice, workspace, serving_dir)


def _choose(config: Config) -> SpanChoice:
    choice = choose_spans(config)
    check_staleness(choice.data, config.validate_data.stale_after_h, time.time())
    return choice


def execute(
    prepared: PreparedRun,
    record: RunRecord,
    engine: Engine | None,
    observer: Observer,
    inputs: RunInputs | None = None,
    *,
    resumed: bool = False,
) -> None:
    """Executes a run that has begun, ends its record and page, and notifies.

    ``inputs`` are those that are known already. The workspace is locked.

    Raises:
      WorkspaceError: the record cannot be written, such as on a full disk.
    """
    workspace, config = prepared.workspace, prepared.config
    run_dir = workspace.run_dir(record.run_id)
    try:
        # It imports TFX in another process, while the inputs are read.
        engine = engine or LocalEngine()
        if stored_inputs(run_dir) is None:
            prepared.record_inputs(record, inputs)
        plan = Plan(
            run_dir,
            config.root,
            workspace.root,
            prepared.choice,
            resumed,
        )
        # No run depends on what it writes.
        is_apart = record.options.dry_run or record.options.trial
        unchanged = up_to_date.kept(workspace) if is_apart else None
        with unchanged or nullcontext():
            engine.run(plan, record, observer)
    except KeyboardInterrupt:
        record.end(ExitCode.INTERRUPTED, "interrupted by SIGINT")
    except SluiceError as error:
        record.fail(str(error), error.exit_code)
        record.end()
    if record.status in ("failed", "interrupted") and not record.was_refused:
        record.resume_command = resume_command(record)
    record.save(run_dir)
    write_report(record, run_dir)
    if record.exit_code == 0 and record.options.is_whole:
        # Inputs that were edited or deleted during the run are for the next to report.
        with suppress(SluiceError, OSError):
            now = prepared.read_inputs()
            if now.to_dict() == stored_inputs(run_dir):
                up_to_date.remember(workspace, record, now)
    notify(config.notify, workspace, record)


def parse_tags(tags: Sequence[str]) -> dict[str, str]:
    """Returns tags by key; of two with the same key the last."""
    parsed: dict[str, str] = {}
    for tag in tags:
        match = _TAG.fullmatch(tag)
        if match is None:
            raise UsageError(
                f"{tag!r} is not a tag: KEY or KEY=VALUE, a key of letters, digits and "
                "_ . / -"
            )
        parsed[match["key"]] = match["value"] or ""
    return parsed
