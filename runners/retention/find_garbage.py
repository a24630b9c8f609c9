"""Finds what garbage collection would delete, on disk and in ML Metadata."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runners.metadata.graph import MetadataGraph
from runners.retention.retention_policy import Kept
from runners.retention.training_checkpoints import expired_checkpoints, folders
from sluice.record.run_record import RECORD_FILE
from sluice.workspace import Workspace

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# TFX's own folder of a node, and in it that of runs, which may be resumed.
_SYSTEM, _BY_RUN = ".system", "stateful_working_dir"


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
      items: what to delete, by kind: ``artifacts`` (with their documents, and all else
        in the folders of nodes), ``runs`` (all but their records), ``inputs`` (copies
        of input files) and ``checkpoints`` (of unfinished trainings that are too old).
      mark: ids of artifacts to mark as deleted.
    """

    kept_runs: tuple[str, ...] = ()
    items: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    mark: tuple[int, ...] = ()

    @property
    def freed_bytes(self) -> int:
        """The size of everything that is deleted."""
        return sum(item.size_bytes for items in self.items.values() for item in items)


def find_garbage(workspace: Workspace, graph: MetadataGraph, kept: Kept) -> Garbage:
    """Returns what is not in ``kept``.

    Raises:
      OSError: a folder cannot be listed.
    """
    outputs = tuple(_outputs(workspace, graph, kept))
    deleted = {path for item in outputs for path in item.paths}
    gone = {
        item.id
        for item in graph.artifacts.values()
        if item.state == "deleted"
        or not deleted.isdisjoint((place := _place(item.uri), *place.parents))
    }
    expired = expired_checkpoints(workspace.checkpoints)
    return Garbage(
        kept_runs=tuple(sorted(kept.runs)),
        items={
            "artifacts": (*outputs, *_documents(workspace, gone)),
            "runs": tuple(_runs(workspace, kept)),
            "inputs": tuple(_inputs(workspace, graph, kept)),
            "checkpoints": tuple(_item(str(path), path) for path in expired),
        },
        mark=tuple(x for x in sorted(gone) if graph.artifacts[x].state != "deleted"),
    )


def _outputs(workspace: Workspace, graph: MetadataGraph, kept: Kept) -> Iterator[Item]:
    """Yields what is in the folders of nodes, unless a kept artifact is there.

    Those are ``<node>/<output>/<execution>`` and TFX's ``<node>/.system/<kind>/<id>``.
    Links are deleted, not followed.
    """
    protected = {
        _place(item.uri)
        for item in graph.artifacts.values()
        if item.id in kept.artifacts or item.properties.get("is_external") == 1
    }
    above = {parent for item in protected for parent in item.parents}
    nodes = {execution.node for execution in graph.executions.values()}
    for node in folders(workspace.artifacts.resolve()):
        if node.name not in nodes:
            continue
        for folder in (*folders(node), *folders(node / _SYSTEM)):
            for path in sorted(folder.iterdir()) if folder.name != _SYSTEM else ():
                if folder.name == _BY_RUN and path.name in kept.runs:
                    continue
                if path not in above and protected.isdisjoint((path, *path.parents)):
                    yield _item(str(path), path)


def _documents(workspace: Workspace, gone: Collection[int]) -> Iterator[Item]:
    """Yields the documents of deleted artifacts: ``<artifact id>.<kind>.json``."""
    for path in sorted(workspace.documents.glob("*.*.json")):
        number = path.name.partition(".")[0]
        if number.isdecimal() and int(number) in gone:
            yield _item(str(path), path)


def _place(uri: str) -> Path:
    """Returns the path of an artifact whose folder may be reached through links."""
    path = Path(os.path.normpath(uri))
    return Path(os.path.realpath(path.parent)) / path.name


def _runs(workspace: Workspace, kept: Kept) -> Iterator[Item]:
    """Yields the runs that have more files than their record."""
    for folder in folders(workspace.runs):
        if folder.name in kept.runs or not _RUN_ID.fullmatch(folder.name):
            continue
        paths = [path for path in sorted(folder.iterdir()) if path.name != RECORD_FILE]
        if paths:
            yield _item(folder.name, *paths)


def _inputs(workspace: Workspace, graph: MetadataGraph, kept: Kept) -> Iterator[Item]:
    """Yields copies of input files whose digest is in no kept run or execution."""
    named = [str(graph.executions[item].properties) for item in kept.executions]
    for run_id in kept.runs:
        for name in (RECORD_FILE, "config.json"):
            path = workspace.run_dir(run_id) / name
            if path.is_file():
                named.append(path.read_text(encoding="utf-8", errors="replace"))
    text = "\n".join(named)
    for kind in folders(workspace.inputs):
        for copy in folders(kind):
            if _SHA256.fullmatch(copy.name) and copy.name not in text:
                yield _item(str(copy), copy)


def _item(name: str, *paths: Path) -> Item:
    return Item(name, paths, sum(map(_size_bytes, paths)))


def _size_bytes(path: Path) -> int:
    """Returns the size of a file, or of all files in a folder; links have their own."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(_size_bytes(Path(entry.path)) for entry in os.scandir(path))
