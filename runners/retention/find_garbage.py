"""What garbage collection keeps, and what it would delete, on disk and in ML Metadata.

Kept are the newest runs, the runs of the served versions, the last complete run, all
artifacts that these read or wrote with everything upstream, and the next run's
baseline.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.baseline_model.blessed_models import BlessedModel
from runners.metadata.read_metadata import MetadataGraph, ids_in
from runners.metadata.trace_lineage import ServedModel, resolved
from runners.retention.training_checkpoints import expired_checkpoints, folders
from serving.model_store import ModelVersion, store_at
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.storage import digest
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
        of input files), ``checkpoints`` (of unfinished trainings that are too old) and
        ``versions`` (by their addresses; the model store deletes their files).
      mark: ids of artifacts to mark as deleted.
    """

    kept_runs: tuple[str, ...] = ()
    items: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    mark: tuple[int, ...] = ()

    @property
    def freed_bytes(self) -> int:
        """The size of everything that is deleted."""
        return sum(item.size_bytes for items in self.items.values() for item in items)


def old_versions(
    serving_dir: str | Path, baselines: Iterable[BlessedModel], keep: int
) -> list[ModelVersion]:
    """Returns the recorded versions of a store that are neither new nor the baseline.

    Args:
      serving_dir: of the store.
      baselines: as ``select_kept`` takes them.
      keep: the number of newest versions to keep, at least 1.
    """
    uris = {item.model.uri for item in baselines}
    versions = store_at(resolved(str(serving_dir))).versions()
    return [
        version
        for version in versions[:-keep]
        if version.digest and version.facts.get("model_uri") not in uris
    ]


def find_garbage(
    workspace: Workspace,
    graph: MetadataGraph,
    kept: Kept,
    versions: Iterable[ModelVersion] = (),
) -> Garbage:
    """Returns what is not in ``kept``, and given versions.

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
            "versions": tuple(Item(x.uri, (), _size_of(x)) for x in versions),
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


def _size_of(version: ModelVersion) -> int:
    return sum(entry.size_bytes for entry in digest.files_below(version.uri))


def _item(name: str, *paths: Path) -> Item:
    return Item(name, paths, sum(map(_size_bytes, paths)))


def _size_bytes(path: Path) -> int:
    """Returns the size of a file, or of all files in a folder; links have their own."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(_size_bytes(Path(entry.path)) for entry in os.scandir(path))


_COMPLETE = ("succeeded", "up_to_date", "skipped")


@dataclass(frozen=True)
class Kept:
    """The ids of the runs, artifacts and executions to keep."""

    runs: frozenset[str]
    artifacts: frozenset[int]
    executions: frozenset[int]


def select_kept(
    graph: MetadataGraph,
    records: Mapping[str, RunRecord],
    served: Sequence[ServedModel],
    baselines: Iterable[BlessedModel],
    keep: int,
) -> Kept:
    """Selects the runs, artifacts and executions to keep.

    Args:
      graph: the pipeline's metadata.
      records: the record of each run, without those that cannot be read.
      served: the versions on disk.
      baselines: the blessed models down to the next run's baseline, without retired
        ones; a damaged one is kept, since the gate must not pass while it is lost.
      keep: the number of newest runs to keep, not counting those that were up to date.
    """
    status: dict[str, str] = {
        run_id: "dry_run" if record.options.dry_run else record.status
        for run_id, record in records.items()
    }
    # A trial, like any part of a graph, is not complete.
    complete = [
        run_id
        for run_id, record in records.items()
        if status[run_id] in _COMPLETE and not record.options.to_nodes
    ]
    ran = {entry.run_id for entry in graph.executions.values() if entry.run_id}
    runs = {
        *_newest(sorted(ran | set(records)), status, keep),
        *sorted(ran.intersection(complete))[-1:],
        *_runs_of(graph, served),
    }
    executions = graph.executions_of(runs)
    # A run may have no executions, such as one that was up to date.
    named = {
        uri for run_id in runs & records.keys() for uri in records[run_id].artifacts
    }
    artifacts, made_by = graph.upstream(
        {
            *ids_in(*(entry.inputs for entry in executions)),
            *ids_in(*(entry.outputs for entry in executions)),
            *(entry.id for entry in graph.artifacts.values() if entry.uri in named),
            *(entry.model_id for entry in served if entry.model_id is not None),
        }
    )
    proofs = {
        artifact
        for entry in baselines
        for artifact in (entry.model.id, entry.blessing_id)
    }
    return Kept(
        frozenset(runs),
        frozenset({*artifacts, *proofs}),
        frozenset({*made_by, *(execution.id for execution in executions)}),
    )


def _newest(run_ids: list[str], status: Mapping[str, str], keep: int) -> list[str]:
    """Returns the newest runs, and open ones; up-to-date and dry ones do not count.

    Otherwise scheduled runs without changes would displace a resumable one. A service
    may run an older one still.
    """
    uncounted = ("up_to_date", "dry_run")
    counted = [run_id for run_id in run_ids if status.get(run_id) not in uncounted]
    oldest = "" if len(counted) <= keep else counted[-keep]
    return [x for x in run_ids if x >= oldest or status.get(x) == "running"]


def _runs_of(graph: MetadataGraph, served: Iterable[ServedModel]) -> Iterator[str]:
    """Yields the runs that pushed the versions, and those that trained the models."""
    for item in served:
        if item.run_id is not None:
            yield item.run_id
        maker = graph.producer(item.model_id or 0)
        if maker is not None and maker.run_id is not None:
            yield maker.run_id
