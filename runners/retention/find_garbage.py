"""Finds what garbage collection would delete, on disk and in ML Metadata."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runners.metadata.metadata_graph import Execution, MetadataGraph
from runners.retention.deletion_guard import DeletionGuard, folders, size_bytes
from runners.retention.retention_policy import Kept, is_complete
from runners.retention.training_checkpoints import expired_checkpoints
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.workspace import Workspace

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Folders of TFX in ``<artifacts>/<node>/.system``. Any other name is left alone.
_SYSTEM = ".system"
_BY_EXECUTION = "executor_execution"
_BY_RUN = "stateful_working_dir"
_BY_TIME = "driver_execution"


@dataclass(frozen=True)
class Item:
    """One thing to delete: its name for people, its files, and their size."""

    name: str
    paths: tuple[Path, ...]
    size_bytes: int


@dataclass(frozen=True)
class Garbage:
    """Files to delete, and changes to ML Metadata.

    Attributes:
      kept_runs: the ids of the kept runs, oldest first.
      artifacts: files of artifacts, named by URI.
      runs: files of other runs except their records, named by run id.
      inputs: copies of input files, named by path.
      checkpoints: of unfinished trainings that are too old or too many.
      leftovers: TFX's own folders and unfinished outputs, named by path.
      mark: ids of artifacts to mark as deleted.
      close: ids of executions to close, whose run was killed.
    """

    kept_runs: tuple[str, ...]
    artifacts: tuple[Item, ...] = ()
    runs: tuple[Item, ...] = ()
    inputs: tuple[Item, ...] = ()
    checkpoints: tuple[Item, ...] = ()
    leftovers: tuple[Item, ...] = ()
    mark: tuple[int, ...] = ()
    close: tuple[int, ...] = ()

    @property
    def items(self) -> dict[str, tuple[Item, ...]]:
        """The items by kind."""
        return {
            "artifacts": self.artifacts,
            "runs": self.runs,
            "inputs": self.inputs,
            "checkpoints": self.checkpoints,
            "leftovers": self.leftovers,
        }

    @property
    def freed_bytes(self) -> int:
        """The size of everything that is deleted."""
        return sum(item.size_bytes for items in self.items.values() for item in items)


def find_garbage(
    workspace: Workspace,
    graph: MetadataGraph,
    records: Mapping[str, RunRecord | None],
    kept: Kept,
    *,
    running: bool = False,
) -> Garbage:
    """Returns what is not in ``kept``.

    Files that a run in progress may write are left out if one is ``running``.

    Raises:
      OSError: a folder cannot be listed.
    """
    scan = _Scan(workspace, graph, records, kept, running)
    artifacts, mark = scan.artifacts()
    return Garbage(
        kept_runs=tuple(sorted(kept.runs)),
        artifacts=artifacts,
        runs=tuple(scan.runs()),
        inputs=tuple(scan.inputs()),
        checkpoints=tuple(scan.checkpoints()),
        leftovers=tuple(scan.leftovers()),
        mark=mark,
        close=tuple(
            item.id
            for item in graph.executions.values()
            if not item.finished and not running
        ),
    )


def kept_uris(graph: MetadataGraph, kept: Kept) -> list[str]:
    """Returns the URIs of kept artifacts."""
    return [graph.artifacts[item].uri for item in sorted(kept.artifacts)]


@dataclass(frozen=True)
class _Scan:
    workspace: Workspace
    graph: MetadataGraph
    records: Mapping[str, RunRecord | None]
    kept: Kept
    running: bool

    def artifacts(self) -> tuple[tuple[Item, ...], tuple[int, ...]]:
        """Returns the files of artifacts to delete, and the artifacts to mark."""
        inside = DeletionGuard(
            self.workspace.artifacts, kept_uris(self.graph, self.kept)
        )
        items: dict[str, Item] = {}
        mark = []
        for artifact in self.graph.artifacts.values():
            external = artifact.properties.get("is_external") == 1
            if artifact.id in self.kept.artifacts or external:
                continue
            if not inside.may_delete(artifact.uri):
                continue
            if artifact.state != "deleted":
                mark.append(artifact.id)
            # A killed collection has marked it, but not deleted all of its files.
            if artifact.state != "deleted" or os.path.lexists(artifact.uri):
                items[artifact.uri] = _item(artifact.uri, Path(artifact.uri))
        return tuple(items.values()), tuple(mark)

    def runs(self) -> Iterator[Item]:
        """Yields the runs that have more files than their record."""
        inside = DeletionGuard(self.workspace.runs)
        for folder in folders(self.workspace.runs):
            if folder.name in self.kept.runs or not self._is_run(folder.name):
                continue
            paths = [
                path for path in sorted(folder.iterdir()) if path.name != RECORD_FILE
            ]
            if paths and all(map(inside.may_delete, paths)):
                yield _item(folder.name, *paths)

    def _is_run(self, name: str) -> bool:
        """Whether a folder belongs to a run; one killed at its start has no record."""
        if name in self.records or name in self.graph.run_ids:
            return True
        return not self.running and _RUN_ID.fullmatch(name) is not None

    def inputs(self) -> Iterator[Item]:
        """Yields copies of input files whose digest is in no kept run or execution."""
        named = self._words()
        for kind in folders(self.workspace.inputs):
            for copy in folders(kind):
                if _SHA256.fullmatch(copy.name) and copy.name not in named:
                    yield _item(str(copy), copy)

    def checkpoints(self) -> Iterator[Item]:
        """Yields the folders of trainings that will hardly be resumed."""
        if not self.running:
            for path in expired_checkpoints(self.workspace.checkpoints):
                yield _item(str(path), path)

    def leftovers(self) -> Iterator[Item]:
        """Yields paths in the folders of nodes that are not artifacts."""
        inside = DeletionGuard(
            self.workspace.artifacts,
            (artifact.uri for artifact in self.graph.artifacts.values()),
        )
        for node in folders(self.workspace.artifacts):
            for path in (*self._system(node), *self._half_written(node)):
                if inside.may_delete(path):
                    yield _item(str(path), path)

    def _system(self, node: Path) -> Iterator[Path]:
        for kind in folders(node / _SYSTEM):
            for path in sorted(kind.iterdir()):
                if kind.name == _BY_EXECUTION:
                    if not self._is_live(path.name):
                        yield path
                elif kind.name == _BY_RUN:
                    if not (self.running or path.name in self._resumable()):
                        yield path
                elif kind.name == _BY_TIME and not self.running:
                    yield path

    def _half_written(self, node: Path) -> Iterator[Path]:
        """Yields outputs of failed executions; TFX leaves those of killed ones."""
        for key in folders(node):
            for path in sorted(key.iterdir()) if key.name != _SYSTEM else ():
                execution = self._execution(path.name)
                if execution is None or execution.node != node.name:
                    continue
                if not execution.succeeded and not self._is_live(path.name):
                    yield path

    def _execution(self, name: str) -> Execution | None:
        is_id = name.isascii() and name.isdigit()
        return self.graph.executions.get(int(name)) if is_id else None

    def _is_live(self, name: str) -> bool:
        execution = self._execution(name)
        return self.running and execution is not None and not execution.finished

    def _resumable(self) -> set[str]:
        """Returns the kept runs that may be resumed."""
        return {
            run_id
            for run_id in self.kept.runs
            if not is_complete(self.records.get(run_id))
        }

    def _words(self) -> str:
        """Returns all text of kept runs and executions that may name an input file."""
        executions = (self.graph.executions[item] for item in self.kept.executions)
        words = [str(item.properties) for item in executions]
        for run_id in self.kept.runs:
            for name in (RECORD_FILE, "config.json"):
                path = self.workspace.run_dir(run_id) / name
                if path.is_file():
                    words.append(path.read_text(encoding="utf-8", errors="replace"))
        return "\n".join(words)


def _item(name: str, *paths: Path) -> Item:
    return Item(name, paths, sum(map(size_bytes, paths)))
