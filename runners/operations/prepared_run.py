"""A run that may begin: its config, spans and places, and the lock on its workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.input_files import SPANS_FILE, SpanChoice
from pipeline.checks.check_config import require_secrets
from pipeline.config.config import Config
from pipeline.config.serialize import (
    plain_config,
    read_stored_config,
    write_stored_config,
)
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.custom_nodes import selected_nodes
from pipeline.graph.node_registry import INGESTION, PUSHER, SERVING_INGESTION
from runners.cache.run_inputs import RunInputs, differences, run_inputs
from runners.engine import Observer
from runners.local.write_report import write_report
from runners.operations.find_run import local_run_ids, resume_command
from serving.model_store import store_at
from serving.store_owner import Owner
from sluice.errors import UsageError, WorkspaceError, bounded
from sluice.project import activate
from sluice.record.parts import PushRecord
from sluice.record.run_record import RunOptions, RunRecord
from sluice.splits import SERVING
from sluice.storage import atomic
from sluice.storage.stat_cache import FileDigests
from sluice.storage.storage_errors import explain_full_disk, require_free_space
from sluice.workspace import Workspace

# Record, compiled graph and ML Metadata of a run before its first output: 0.6 MB for
# `digits`. With less, SQLite fails inside TFX.
_RUN_BYTES = 4_000_000
_INPUTS_FILE = "inputs.json"
# The node that reads each input, as the record names it.
_INGESTED_BY = {"data": INGESTION, SERVING: SERVING_INGESTION}


@dataclass(frozen=True)
class PreparedRun:
    """Validated config of a run, with its spans and the places that it writes to."""

    config: Config
    choice: SpanChoice
    workspace: Workspace
    serving_dir: str

    def read_inputs(self) -> RunInputs:
        """Returns digests of config, schema, code, data and packages as they are now.

        Those of files come from the stat cache where it has them.
        """
        digests = FileDigests(self.workspace.digests_file)
        root, serving_dir = self.workspace.root, self.serving_dir
        found = run_inputs(self.config, root, serving_dir, self.choice, digests)
        digests.save()
        return found

    def prepare_store(self, to_nodes: Sequence[str]) -> None:
        """Checks that the run can push its model; see ``ModelStore.prepare``.

        Raises:
          UsageError: nothing can be pushed there.
        """
        if PUSHER in selected_nodes(self.config, to_nodes):
            owner = Owner(self.config.name, self.workspace.id)
            store_at(self.serving_dir).prepare(owner)

    def begin(
        self, options: RunOptions, command: str, tags: dict[str, str]
    ) -> RunRecord:
        """Makes the folder of a new run, and returns its record."""
        config, run_id = self.config, self.workspace.new_run_id()
        self.workspace.run_dir(run_id).mkdir(parents=True)
        record = RunRecord(
            run_id=run_id,
            pipeline=config.name,
            command=command,
            options=options,
            pushes=[PushRecord(self.serving_dir)],
            config=plain_config(config),
            tags=tags,
        )
        if INGESTION in selected_nodes(config, options.to_nodes):
            record.notes = bounded(self.choice.data.skipped)
        return record

    def save(self, record: RunRecord) -> None:
        """Stores the config of a run that executes nodes, and its record."""
        run_dir = self.workspace.run_dir(record.run_id)
        write_stored_config(self.config, run_dir / "config.json")
        record.save(run_dir)

    def record_inputs(self, record: RunRecord, inputs: RunInputs | None = None) -> None:
        """Stores the digests of a run's inputs, and records them with its spans.

        Raises:
          UsageError: an input is missing or cannot be read.
        """
        inputs = inputs or self.read_inputs()
        selected = selected_nodes(self.config, record.options.to_nodes)
        record.spans = {
            name: [span.to_dict() for span in window.spans]
            for name, window in self.choice.windows.items()
            if _INGESTED_BY[name] in selected
        }
        record.digests, record.packages = inputs.summary(), inputs.packages
        run_dir = self.workspace.run_dir(record.run_id)
        record.save(run_dir)
        # Last: a run that has this file is not recorded again when it is resumed.
        atomic.write_json(run_dir / _INPUTS_FILE, inputs.to_dict())


def load_prepared_run(workspace: Workspace, record: RunRecord) -> PreparedRun:
    """Returns the stored config and spans of a run; makes its code importable.

    Chooses the spans if the run was stopped before it had stored them.

    Raises:
      UsageError: `sluice gc` has deleted its config, or an environment variable that
        the config refers to is not set.
    """
    run_dir = workspace.run_dir(record.run_id)
    try:
        config = read_stored_config(run_dir / "config.json")
    except FileNotFoundError as error:
        raise UsageError(
            f"run {record.run_id} cannot be resumed: 'sluice gc' has deleted its "
            "artifacts",
            where=run_dir,
        ) from error
    require_secrets(config)
    activate(config.root)
    try:
        choice = SpanChoice.load(run_dir / SPANS_FILE)
    except FileNotFoundError:
        choice = choose_spans(config)
    return PreparedRun(config, choice, workspace, record.pushes[0].destination)


def stored_inputs(run_dir: Path) -> dict[str, Any] | None:
    """Returns what ``record_inputs`` stored; None where the run ended before that."""
    try:
        return json.loads((run_dir / _INPUTS_FILE).read_text())
    except FileNotFoundError:
        return None


def require_unchanged_inputs(run_dir: Path, now: RunInputs, hint: str) -> None:
    """Raises if a run cannot continue because its inputs are not those it began with.

    A run that was stopped before its first node may have stored none.

    Raises:
      UsageError: schema, code, data or packages have changed.
    """
    before = stored_inputs(run_dir)
    parts = ("schema", "code", "data", "packages")
    if before and (changed := differences(before, now.to_dict(), parts)):
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: its inputs have changed since",
            where=run_dir,
            examples=changed,
            hint=hint,
        )


@contextmanager
def lock_workspace(
    workspace: Workspace, command: str, wait: bool, observer: Observer
) -> Iterator[None]:
    """Holds the run lock of a pipeline; first ends the record of a killed run.

    Raises:
      LockedError: another run is in progress.
      WorkspaceError: the disk is full.
    """
    require_free_space(workspace.root, _RUN_BYTES)
    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(
            command,
            wait=wait,
            on_wait=lambda owner: observer.on_note(f"waiting for {owner}"),
        ),
    ):
        workspace.ensure_id()
        _end_killed_run(workspace)
        yield


def _end_killed_run(workspace: Workspace) -> None:
    """Writes how a killed run ended; runs follow each other, so it is the newest."""
    for run_id in local_run_ids(workspace):
        run_dir = workspace.run_dir(run_id)
        try:
            if RunRecord.load(run_dir).status == "running":
                record = RunRecord.load_ended(run_dir)
                record.resume_command = resume_command(record)
                record.save(run_dir)
                write_report(record, run_dir)
        except WorkspaceError:
            # A damaged record must not keep the next run from beginning.
            continue
        return
