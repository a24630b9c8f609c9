"""Ingests TFRecord files and tables: checked records to shards, bad ones to quarantine.

Bad records do not fail the ingestion. They are counted in the report, and the data gate
judges them, so that its policy is in one place and a verdict is always published.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from components.tfrecord_gen.check_files import check_files
from components.tfrecord_gen.equal_records import (
    ORIGIN,
    find_equal,
    write_origins,
)
from components.tfrecord_gen.ingest_files import Ingested, ingest_group
from components.tfrecord_gen.ingestion_report import (
    REPORT_FILE,
    Expected,
    Report,
)
from components.tfrecord_gen.input_files import SourceFile, Window
from components.tfrecord_gen.quarantine import write_quarantine
from components.tfrecord_gen.scan import first_types
from components.tfrecord_gen.settings import Ingestion
from components.tfrecord_gen.shard_writer import name_shards
from sluice.engine_calls import run_on_engine
from sluice.errors import MAX_EXAMPLES
from sluice.forked_calls import run_forked
from sluice.storage import digest
from sluice.storage.storage import is_remote, storage_for

# Files of a split from this size on are shards of their own: copied, if they are good.
_SHARD_FROM_BYTES = 1 << 20
_GROUP_BYTES = 4 << 20


def ingest(
    settings: Ingestion,
    window: Window,
    split_dirs: Mapping[str, str],
    quarantine_dir: str,
    workers: int,
    make_pipeline: Callable[[], Any] | None = None,
) -> Report:
    """Reads every file once and writes the shards, the quarantine and the report.

    A large, undamaged file of one split and one gzip member is copied byte for byte.
    The records of other files are rewritten, those of small files into shared shards.
    The output does not depend on where the work is done.

    Args:
      settings: the checks of the records.
      window: the files.
      split_dirs: by split the folder of its shards, which are named
        ``data_tfrecord-NNNNN-of-NNNNN.gz``; every split gets at least one.
      quarantine_dir: folder of ``report.json`` and ``quarantine.tfrecord.gz``.
      workers: processes; twice as many for files in a bucket. The caller has no
        threads.
      make_pipeline: makes the pipeline of Beam that does the work instead, on an engine
        whose workers see all of these folders.

    Raises:
      UsageError: a file cannot be read, or changes while it is read.
      OSError: an output cannot be written, for example on a full disk.
    """
    folders = [*split_dirs.values(), quarantine_dir]
    for folder in folders:
        if is_remote(folder):
            # A service repeats a failed task with the same folders; the files that it
            # selects then may be others.
            storage_for(folder).delete_tree(folder)
        storage_for(folder).make_folder(folder)
    if any(is_remote(file.path) for file in window.files):
        # They wait half of the time: with 0.1 s to an answer, 1.2 to 1.5 times as fast.
        workers *= 2
    if settings.images and workers > 1 and not make_pipeline:
        # Imported once, before the fork, instead of in each worker.
        import tensorflow  # noqa: F401
    types = first_types(
        window.files, settings.max_record_bytes, are_logs=settings.are_logs
    )
    types |= settings.types
    settings = settings.model_copy(update={"types": types})
    groups = _groups(window.files)
    # In the output, which is emptied before another attempt, and which all workers see.
    parts_dir = os.path.join(quarantine_dir, ".parts")
    storage_for(parts_dir).make_folder(parts_dir)
    part_path = os.path.join(parts_dir, "{}")
    of_group = partial(ingest_group, settings, split_dirs, part_path)
    if make_pipeline:
        done = run_on_engine(of_group, [*enumerate(groups)], make_pipeline, parts_dir)
    else:
        done = run_forked(of_group, [*enumerate(groups)], workers)
    kept = write_quarantine(
        quarantine_dir, [part_path.format(index) for index in range(len(groups))]
    )
    storage_for(parts_dir).delete_tree(parts_dir)
    parts = [part for group in done for part in group.parts]
    origins = _origins(done, split_dirs)
    shards: dict[str, np.ndarray] = {}
    for split, folder in split_dirs.items():
        own = [part for part in parts if part.split == split]
        names = name_shards(split, folder, own)
        ends = np.cumsum([part.records for part in own])
        of_shards = zip(names, np.split(origins[split], ends), strict=False)
        shards |= {f"{os.path.basename(folder)}/{x}": found for x, found in of_shards}
    report = _report(settings, window, done, origins, kept)
    paths = [file.path for file in report.files]
    write_origins(os.path.dirname(folder), paths, shards)
    storage_for(quarantine_dir).write_atomically(
        os.path.join(quarantine_dir, REPORT_FILE), report.to_json()
    )
    return report


def _groups(files: Iterable[SourceFile]) -> list[list[SourceFile]]:
    """Returns the files in order, small ones of the same split together."""
    groups: list[list[SourceFile]] = []
    room = 0
    for file in files:
        large = file.split is not None and file.size_bytes >= _SHARD_FROM_BYTES
        full = large or file.size_bytes > room
        if not groups or full or groups[-1][-1].split != file.split:
            groups.append([])
            # Not even an empty file joins a large one.
            room = -1 if large else _GROUP_BYTES
        groups[-1].append(file)
        room -= file.size_bytes
    return groups


def _origins(
    groups: Sequence[Ingested], splits: Iterable[str]
) -> dict[str, np.ndarray]:
    """Returns the origins of the records of each split, in the order of its shards."""
    origins: dict[str, list[np.ndarray]] = {split: [] for split in splits}
    files = 0
    for group in groups:
        for split, parts in group.origins.items():
            for part in parts:
                part["file"] += files
            origins[split] += parts
        files += len(group.files)
    none = np.empty(0, ORIGIN)
    return {split: np.concatenate([none, *parts]) for split, parts in origins.items()}


def _expected(groups: Iterable[Ingested]) -> tuple[Expected, ...]:
    found: dict[tuple[str, str], Expected] = {}
    for item in (item for group in groups for item in group.expectations):
        key = item.split, item.rule
        found[key] = found[key].plus(item) if key in found else item
    return tuple(found.values())


def _report(
    settings: Ingestion,
    window: Window,
    groups: Sequence[Ingested],
    origins: Mapping[str, np.ndarray],
    kept: int,
) -> Report:
    files = [file for group in groups for file in group.files]
    errors = sum((group.errors for group in groups), Counter[str]())
    listed = [error for group in groups for error in group.first_errors]
    digests = {file.path: file.sha256 for file in files}
    records = sum(file.records for file in files)
    quarantined = sum(file.quarantined for file in files)
    size = sum(group.bytes for group in groups)
    bad_bytes = sum(group.bad_bytes for group in groups) if quarantined else 0
    # What is left of a destroyed file may be a few bytes.
    lost = sum(file.lost_bytes > 0 and not file.records for file in files)
    return Report(
        files=tuple(files),
        splits={split: len(found) for split, found in origins.items()},
        records=records,
        quarantined=quarantined,
        lost_bytes=sum(file.lost_bytes for file in files),
        corrupt_fraction=max(
            quarantined / max(1, records + quarantined),
            min(1.0, bad_bytes / max(1, size)),
            lost / max(1, len(files)),
        ),
        errors=dict(errors),
        first_errors=tuple(
            error
            for kind in errors
            for error in [item for item in listed if item.kind == kind][:MAX_EXAMPLES]
        ),
        problems=check_files(files),
        spans=tuple(sorted({f.span for f in window.files if f.span is not None})),
        skipped_spans=window.skipped,
        quarantine_cut=kept < quarantined,
        max_record_bytes=settings.max_record_bytes,
        where=settings.where,
        equal=tuple(find_equal(origins, [*digests])),
        expected=_expected(groups),
        contents=window.contents(
            lambda path: digests.get(str(path)) or digest.of_file(path)
        ),
    )
