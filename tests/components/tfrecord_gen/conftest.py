"""Fixtures: shards to damage, and a short call of ``ingest``."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.ingestion import Ingestion
from components.tfrecord_gen.report import Report
from components.tfrecord_gen.spans.window import SourceFile
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from sluice.tfrecords.frame_encoding import frame


class Make:
    """Makes shards to damage."""

    @staticmethod
    def examples(count: int, start: int = 0) -> list[bytes]:
        """Records of several sizes, all different."""
        return [
            encode({"id": [start + n], "text": [bytes([n % 256]) * (7 * n % 300 + 1)]})
            for n in range(count)
        ]

    @staticmethod
    def framed(records: Sequence[bytes]) -> bytes:
        return b"".join(map(frame, records))

    @staticmethod
    def gzipped(content: bytes) -> bytes:
        return gzip.compress(content, 1, mtime=0)

    @staticmethod
    def members(content: bytes) -> bytes:
        """Three members, cut where no record ends, and one without content."""
        at = len(content) // 3 + 1
        parts = (content[:at], content[at : 2 * at], b"", content[2 * at :])
        return b"".join(map(Make.gzipped, parts))

    def shard(self, records: Sequence[bytes], compression: str = "none") -> bytes:
        """A file's bytes; compression: none, gzip or members."""
        return self.compressed(self.framed(records), compression)

    def compressed(self, content: bytes, compression: str) -> bytes:
        """The same of records that are framed already."""
        encoders: dict[str, Callable[[bytes], bytes]] = {
            "none": bytes,
            "gzip": self.gzipped,
            "members": self.members,
        }
        return encoders[compression](content)

    @staticmethod
    def decompressed(data: bytes) -> bytes:
        """A file's bytes without compression, which is told as it is by gzip itself."""
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data

    @staticmethod
    def room(root: Path) -> Room:
        return Room(root)


class Room:
    """A folder with input files, and what an ingestion of them wrote."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inputs = root / "in"
        self.inputs.mkdir()
        self.out = root / "out"

    def put(self, name: str, data: bytes) -> str:
        path = self.inputs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def ingest(
        self,
        *paths: str,
        splits: Sequence[str] = ("train",),
        workers: int = 1,
        **options: Any,
    ) -> Report:
        split = None if "hash_splits" in options else splits[0]
        files = tuple(SourceFile(path, split) for path in paths)
        return self.ingest_files(files, splits=splits, workers=workers, **options)

    def ingest_files(
        self,
        files: tuple[SourceFile, ...],
        splits: Sequence[str],
        workers: int = 1,
        **options: Any,
    ) -> Report:
        folders = {split: str(self.out / f"Split-{split}") for split in splits}
        quarantine = str(self.out / "quarantine")
        report = ingest(Ingestion(files, **options), folders, quarantine, workers)
        assert Report.load(quarantine) == report
        return report

    def shards(self, split: str = "train") -> list[Path]:
        return sorted((self.out / f"Split-{split}").iterdir())

    def records(self, split: str = "train") -> list[bytes]:
        found: list[bytes] = []
        for path in self.shards(split):
            content = gzip.decompress(path.read_bytes())
            if content:
                found += tfrecord.read(path)
        return found

    def quarantine(self) -> list[bytes]:
        path = self.out / "quarantine" / "quarantine.tfrecord.gz"
        return list(tfrecord.read(path)) if gzip.decompress(path.read_bytes()) else []


@pytest.fixture(scope="session")
def make() -> Make:
    return Make()


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)
