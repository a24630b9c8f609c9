"""Ingests one group of files: the job of one worker process."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from components.tfrecord_gen.conditions import FALSE, TRUE, UNKNOWN
from components.tfrecord_gen.equal_records import ORIGIN
from components.tfrecord_gen.ingestion_report import Expected, FileReport
from components.tfrecord_gen.input_files import SourceFile
from components.tfrecord_gen.quarantine import QuarantineWriter, quarantined
from components.tfrecord_gen.scan import scan_batches
from components.tfrecord_gen.settings import Ingestion
from components.tfrecord_gen.shard_writer import Part, ShardWriter
from sluice.errors import MAX_EXAMPLES
from sluice.storage.storage import storage_for
from sluice.table_files import is_table
from sluice.tfrecords.frame_encoding import FRAME_BYTES
from sluice.tfrecords.frame_reader import Batch, RecordError
from sluice.tfrecords.input_stream import InputStream

# gzip levels of the output by compression of the input. Level 0 stores, and writes ten
# times as many bytes a second as level 1.
_LEVELS = {"none": 0, "gzip": 1}


@dataclass
class Ingested:
    """Result for a group of files.

    Attributes:
        files: a report for each file.
        parts: shards without final names.
        bytes: decompressed bytes of the files, lost ones included.
        bad_bytes: bytes of bad records, and lost bytes.
        errors: number of errors by kind.
        first_errors: the first five of each kind.
        origins: by split those of its records, with the places of the files here.
        expectations: what batches of records meet.
    """

    files: list[FileReport] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    bytes: int = 0
    bad_bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    first_errors: list[RecordError] = field(default_factory=list)
    origins: dict[str, list[np.ndarray]] = field(
        default_factory=lambda: defaultdict(list)
    )
    expectations: list[Expected] = field(default_factory=list)

    def locate(self, split: str, batch: Batch, places: Sequence[int]) -> None:
        """Adds the origins of some records of a batch of the file being read."""
        origins = np.empty(len(places), ORIGIN)
        digests = b"".join(batch.digests[i] for i in places)
        origins["digest"] = np.frombuffer(digests, "<u8")
        origins["file"] = len(self.files)
        origins["record"] = batch.number + np.asarray(places)
        self.origins[split].append(origins)

    def note(self, error: RecordError) -> None:
        """Counts an error."""
        self.errors[error.kind] += 1
        self.bad_bytes += error.lost_bytes or len(error.data or b"") + FRAME_BYTES
        if self.errors[error.kind] <= MAX_EXAMPLES:
            self.first_errors.append(replace(error, data=None))


def ingest_group(
    settings: Ingestion,
    split_dirs: Mapping[str, str],
    part_path: str,
    group: tuple[int, Sequence[SourceFile]],
) -> Ingested:
    """Reads a group's files and writes their good records.

    Args:
      settings: the checks of the records.
      split_dirs: by split the folder of its shards.
      part_path: path of a group's part of the quarantine; ``{}`` is the group's index.
      group: its index, and its files: one, or several small ones, of one split or to
        be hashed. They are written to shards of their own.

    Raises:
      UsageError: a file cannot be read.
      OSError: an output cannot be written.
    """
    index, files = group
    with closing(QuarantineWriter(part_path.format(index), level=0)) as part:
        work = _GroupIngestion(settings, split_dirs, index, part)
        for file in files:
            work.ingest(file, alone=len(files) == 1)
        for writer in work.writers.values():
            writer.close()
            work.ingested.parts += writer.parts
        return work.ingested


@dataclass
class _GroupIngestion:
    """The ingestion of one group of files."""

    settings: Ingestion
    split_dirs: Mapping[str, str]
    index: int
    quarantine: QuarantineWriter
    writers: dict[str, ShardWriter] = field(default_factory=dict)
    ingested: Ingested = field(default_factory=Ingested)

    def ingest(self, file: SourceFile, *, alone: bool) -> None:
        """Reads a file, and copies it or writes its good records."""
        digest = hashlib.sha256()
        tees: list[Callable[[bytes], object]] = [digest.update]
        with InputStream(file.path, tees, file.generation) as stream:
            is_other = self.settings.are_logs or is_table(file.path)
            may_copy = alone and not is_other and self.settings.where is None
            if may_copy and file.split and stream.compression == "gzip":
                path = self._path(file.split, "copy")
                with storage_for(path).open(path, "wb") as copy:
                    tees.append(copy.write)
                    report = self._read(file, stream, digest.hexdigest, write=False)
                is_good = report.records and not report.quarantined
                if stream.one_member and is_good:
                    self.ingested.parts.append(Part(file.split, path, report.records))
                else:
                    storage_for(path).delete(path)
                    self._rewrite(file)
            else:
                report = self._read(file, stream, digest.hexdigest, write=True)
        self.ingested.files.append(report)

    def _read(
        self,
        file: SourceFile,
        stream: InputStream,
        sha256: Callable[[], str],
        *,
        write: bool,
    ) -> FileReport:
        """Reads a file, counts its errors, and optionally writes its good records."""
        records = bad = lost_bytes = filtered = 0
        for item in scan_batches(stream, self.settings):
            errors = [item] if isinstance(item, RecordError) else []
            filtered += 0 if isinstance(item, RecordError) else len(item.records)
            for batch in self._kept(item):
                filtered -= len(batch.records)
                if file.split is not None:
                    self._add(file, file.split, batch, range(len(batch.records)))
                found = []
                if write:
                    found = self._write(file, batch, stream.compression)
                records += len(batch.records) - len(found)
                errors += found
            for error in errors:
                bad += 1
                lost_bytes += error.lost_bytes
                self.ingested.note(error)
                self.quarantine.add(quarantined(error))
        self.ingested.bytes += stream.content_bytes + stream.lost_bytes
        return FileReport(
            path=file.path,
            span=file.span,
            version=file.version,
            split=file.split,
            size_bytes=stream.size_bytes,
            sha256=sha256(),
            records=records,
            quarantined=bad,
            lost_bytes=lost_bytes,
            filtered=filtered,
        )

    def _kept(self, item: Batch | RecordError) -> Iterator[Batch]:
        """Yields the records that ``where`` keeps, in runs."""
        if isinstance(item, Batch) and self.settings.where is None:
            yield item
        elif isinstance(item, Batch):
            left_out = np.flatnonzero(item.values[0] != TRUE)
            runs = item.split(left_out.tolist())
            yield from (x for x in runs if isinstance(x, Batch))

    def _add(
        self, file: SourceFile, split: str, batch: Batch, places: Sequence[int]
    ) -> None:
        """Adds records of the file being read to a split."""
        self.ingested.locate(split, batch, places)
        rules = self.settings.expect
        values_of = batch.values[-len(rules) :] if rules else ()
        for rule, values in zip(rules, values_of, strict=True):
            met = values[[*places]]
            broken = [places[i] for i in np.flatnonzero(met == FALSE)[:MAX_EXAMPLES]]
            where = [f"{file.path}, record {batch.number + i:,}" for i in broken]
            counts = len(met), int((met == FALSE).sum()), int((met == UNKNOWN).sum())
            self.ingested.expectations.append(Expected(rule, split, *counts, (*where,)))

    def _rewrite(self, file: SourceFile) -> None:
        """Reads a file a second time, and writes its good records."""
        with InputStream(file.path, generation=file.generation) as stream:
            for item in scan_batches(stream, self.settings):
                for batch in self._kept(item):
                    self._write(file, batch, stream.compression)

    def _write(
        self, file: SourceFile, batch: Batch, compression: str
    ) -> list[RecordError]:
        """Writes records to their splits; returns those that have no split."""
        level = _LEVELS[compression]
        if file.split is not None:
            writer = self._writer(file.split, level)
            writer.write(batch.frames(), len(batch.records))
            return []
        hash_splits = self.settings.hash_splits
        assert hash_splits is not None, "a file without a split, and no hash splits"
        kept: dict[str, list[int]] = defaultdict(list)
        errors = []
        for index, record in enumerate(batch):
            try:
                split = hash_splits.split_of(record.data)
            except LookupError as missing:
                kind, why = "no_partition_feature", str(missing.args[0])
                at = file.path, record.number, record.offset
                errors.append(RecordError(*at, kind, why, record.data))
            else:
                kept[split].append(index)
        for split, places in kept.items():
            frames = b"".join(map(batch.frame, places))
            self._writer(split, level).write(frames, len(places))
            self._add(file, split, batch, places)
        return errors

    def _writer(self, split: str, level: int) -> ShardWriter:
        """Returns the writer of a split; the group's first file decides the level."""
        if split not in self.writers:
            prefix = self._path(split, "new")
            self.writers[split] = ShardWriter(split, prefix, level)
        return self.writers[split]

    def _path(self, split: str, state: str) -> str:
        name = f".part-{self.index:06d}-{state}"
        return os.path.join(self.split_dirs[split], name)
