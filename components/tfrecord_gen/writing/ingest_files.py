"""Ingests one group of files: the job of one worker process."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from components.tfrecord_gen.checking.scan import filter_records, scan_batches
from components.tfrecord_gen.ingestion import Ingested, Ingestion
from components.tfrecord_gen.report import FileReport
from components.tfrecord_gen.spans.window import SourceFile
from components.tfrecord_gen.writing.quarantine import QuarantineLimit, QuarantinePart
from components.tfrecord_gen.writing.shard_writer import Part, ShardWriter
from sluice.errors import UsageError
from sluice.storage.storage import storage_for
from sluice.tfrecords.frame_reader import Batch, RecordError
from sluice.tfrecords.input_stream import InputStream

# gzip levels of the output by compression of the input. Level 0 stores, and writes ten
# times as many bytes a second as level 1.
_LEVELS = {"none": 0, "gzip": 1}


@dataclass(frozen=True)
class Group:
    """Files of one split, or to be hashed, that are written to shards of their own.

    Attributes:
        index: of the group.
        files: in order; one, or several small ones.
    """

    index: int
    files: tuple[SourceFile, ...]


def ingest_group(
    ingestion: Ingestion,
    split_dirs: Mapping[str, str],
    part_path: str,
    limit: QuarantineLimit,
    group: Group,
) -> Ingested:
    """Reads a group's files and writes their good records.

    Args:
      ingestion: the checks of the records.
      split_dirs: by split the folder of its shards.
      part_path: path of a group's part of the quarantine; ``{}`` is the group's index.
      limit: of the quarantine, for all groups of this process.
      group: the files.

    Raises:
      UsageError: a file cannot be read, or changes while it is read.
      OSError: an output cannot be written.
    """
    path = part_path.format(group.index)
    with closing(QuarantinePart(path, limit)) as part:
        group_ingestion = _GroupIngestion(ingestion, split_dirs, group, part)
        for file in group.files:
            group_ingestion.ingest(file)
        return group_ingestion.end()


class _GroupIngestion:
    """The ingestion of one group of files."""

    def __init__(
        self,
        ingestion: Ingestion,
        split_dirs: Mapping[str, str],
        group: Group,
        quarantine: QuarantinePart,
    ) -> None:
        self._ingestion = ingestion
        self._split_dirs = split_dirs
        self._group = group
        self._quarantine = quarantine
        self._writers: dict[str, ShardWriter] = {}
        self._ingested = Ingested()

    def end(self) -> Ingested:
        """Ends the shards."""
        for writer in self._writers.values():
            writer.close()
            self._ingested.parts += writer.parts
        return self._ingested

    def ingest(self, file: SourceFile) -> None:
        """Reads a file, and copies it or writes its good records."""
        digest = hashlib.sha256()
        tees: list[Callable[[bytes], object]] = [digest.update]
        with InputStream(file.path, tees, file.generation) as stream:
            alone = len(self._group.files) == 1
            if alone and file.split and stream.compression == "gzip":
                path = self._path(file.split, "copy")
                with storage_for(path).open(path, "wb") as copy:
                    tees.append(copy.write)
                    report = self._read(file, stream, digest.hexdigest, write=False)
                if stream.one_member and not report.quarantined:
                    self._ingested.parts.append(Part(file.split, path, report.records))
                else:
                    storage_for(path).delete(path)
                    self._rewrite(file, report)
            else:
                report = self._read(file, stream, digest.hexdigest, write=True)
        self._ingested.files.append(report)

    def _read(
        self,
        file: SourceFile,
        stream: InputStream,
        sha256: Callable[[], str],
        *,
        write: bool,
    ) -> FileReport:
        """Reads a file, counts its errors, and optionally writes its good records."""
        records = quarantined = lost_bytes = 0
        for item in self._sound(stream):
            errors = [item] if isinstance(item, RecordError) else []
            if isinstance(item, Batch):
                if write:
                    errors = self._write(file, item, stream.compression)
                records += len(item.records) - len(errors)
            for error in errors:
                quarantined += 1
                lost_bytes += error.lost_bytes
                self._ingested.note(error)
                self._quarantine.add(error)
        self._ingested.bytes += stream.content_bytes + stream.lost_bytes
        return FileReport(
            path=file.path,
            span=file.span,
            version=file.version,
            split=file.split,
            size_bytes=stream.size_bytes,
            sha256=sha256(),
            compression=stream.compression,
            records=records,
            quarantined=quarantined,
            lost_bytes=lost_bytes,
            content_bytes=stream.content_bytes,
            content_crc32c=stream.content_crc32c,
        )

    def _rewrite(self, file: SourceFile, report: FileReport) -> None:
        """Reads a file a second time, and writes its good records."""
        digest = hashlib.sha256()
        with InputStream(file.path, [digest.update], file.generation) as stream:
            for item in self._sound(stream):
                if isinstance(item, Batch):
                    self._write(file, item, stream.compression)
        if digest.hexdigest() != report.sha256:
            raise UsageError(
                "this file changed while it was being read",
                where=file.path,
                expected=f"SHA-256 {report.sha256}",
                actual=f"SHA-256 {digest.hexdigest()}, a moment later",
                hint="wait until it has been written; see examples.complete_when",
            )

    def _sound(self, stream: InputStream) -> Iterator[Batch | RecordError]:
        """Yields the records that pass every check, and an error for each other one."""
        images, limit = self._ingestion.images, self._ingestion.max_record_bytes
        if not images:
            yield from scan_batches(stream, limit)
            return
        # Imports TensorFlow; only needed for images.
        from components.tfrecord_gen.checking.check_images import check_images

        for item in scan_batches(stream, limit):
            if isinstance(item, RecordError):
                yield item
            else:
                yield from filter_records(
                    stream.path,
                    item,
                    "image",
                    lambda record: check_images(record.data, images),
                )

    def _write(
        self, file: SourceFile, batch: Batch, compression: str
    ) -> list[RecordError]:
        """Writes records to their splits; returns those that have no split."""
        level = _LEVELS[compression]
        if file.split is not None:
            writer = self._writer(file.split, level)
            writer.write(batch.frames(), len(batch.records))
            return []
        hash_splits = self._ingestion.hash_splits
        assert hash_splits is not None, "a file without a split, and no hash splits"
        frames: dict[str, list[bytes]] = defaultdict(list)
        errors = []
        for index, record in enumerate(batch):
            try:
                split = hash_splits.split_of(record.data)
            except LookupError as missing:
                error = RecordError(
                    file.path,
                    record.number,
                    record.offset,
                    "no_partition_feature",
                    str(missing.args[0]),
                    record.data,
                )
                errors.append(error)
            else:
                frames[split].append(batch.frame(index))
        for split, parts in frames.items():
            self._writer(split, level).write(b"".join(parts), len(parts))
        return errors

    def _writer(self, split: str, level: int) -> ShardWriter:
        """Returns the writer of a split; the group's first file decides the level."""
        if split not in self._writers:
            prefix = self._path(split, "new")
            self._writers[split] = ShardWriter(split, prefix, level)
        return self._writers[split]

    def _path(self, split: str, what: str) -> str:
        name = f".part-{self._group.index:06d}-{what}"
        return os.path.join(self._split_dirs[split], name)
