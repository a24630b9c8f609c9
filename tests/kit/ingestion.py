"""Shards to damage, what each damage does, and a folder to ingest them in."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.ingestion_report import Report
from components.tfrecord_gen.input_files import SourceFile, Window
from components.tfrecord_gen.settings import Ingestion
from sample_data.tf_example import encode
from sluice.storage.storage import storage_for
from sluice.tfrecords import tfrecord
from sluice.tfrecords.frame_encoding import frame, masked_crc


def examples(count, start=0):
    """Records of several sizes, all different."""
    return [
        encode({"id": [start + n], "text": [bytes([n % 256]) * (7 * n % 300 + 1)]})
        for n in range(count)
    ]


def framed(records):
    return b"".join(map(frame, records))


def members(content):
    """Three gzip members, cut where no record ends, and one without content."""
    at = len(content) // 3 + 1
    parts = (content[:at], content[at : 2 * at], b"", content[2 * at :])
    return b"".join(gzip.compress(part, 1, mtime=0) for part in parts)


COMPRESSIONS = {
    "none": bytes,
    "gzip": lambda content: gzip.compress(content, 1, mtime=0),
    "members": members,
}


def shard(records, compression="none"):
    return COMPRESSIONS[compression](framed(records))


class Room:
    """A folder, or an address in a bucket, with input files and ingested ones."""

    def __init__(self, base):
        self.base = str(base)
        self.out = f"{base}/out"

    def put(self, name, data):
        """Writes an input file and returns its path."""
        path = f"{self.base}/in/{name}"
        storage = storage_for(path)
        storage.make_folder(os.path.dirname(path))
        storage.write_atomically(path, data)
        return path

    def ingest(self, *paths, splits=("train",), workers=1, **settings):
        split = None if "hash_splits" in settings else splits[0]
        files = [SourceFile(path, split) for path in paths]
        return self.ingest_files(files, splits, workers, **settings)

    def ingest_files(
        self, files, splits, workers=1, skipped=(), make_pipeline=None, **settings
    ):
        hashed = "hash_splits" in settings
        patterns = {"": "*"} if hashed else dict.fromkeys(splits, "*")
        asked = Ingestion(base=self.base, patterns=patterns, **settings)
        sized = [replace(f, size_bytes=_size(f.path)) for f in files]
        window = Window(self.base, patterns, tuple(sized), skipped=skipped)
        folders = {split: f"{self.out}/Split-{split}" for split in splits}
        aside = f"{self.out}/quarantine"
        report = ingest(asked, window, folders, aside, workers, make_pipeline)
        assert Report.load(f"{self.out}/quarantine") == report
        return report

    def shards(self, split="train"):
        folder = f"{self.out}/Split-{split}"
        names = storage_for(folder).names(folder)
        assert all(name.startswith("data_tfrecord-") for name in names)
        return [f"{folder}/{name}" for name in sorted(names)]

    def records(self, split="train"):
        return [record for path in self.shards(split) for record in _read(path)]

    def quarantine(self):
        return _read(f"{self.out}/quarantine/quarantine.tfrecord.gz")


def _size(path):
    storage = storage_for(path)
    return storage.stat(path).size_bytes if storage.exists(path) else 0


def _read(path):
    content = gzip.decompress(storage_for(path).read(path))
    return list(tfrecord.read(path)) if content else []


RECORDS = [encode({"id": [n], "text": [bytes([n]) * 9 * n]}) for n in range(1, 21)]
_FRAMES = [frame(data) for data in RECORDS]
WHOLE = b"".join(_FRAMES)
# Where record 3 begins.
THIRD = len(_FRAMES[0] + _FRAMES[1])
# Longer records are too large.
LIMIT = 1_000
_LARGE = frame(bytes(700_000))


def _flipped(at):
    """Flips a bit of record 3: length at byte 0, the length's CRC at 8, data at 12."""
    third = bytearray(_FRAMES[2])
    third[at] ^= 0x10
    return b"".join([*_FRAMES[:2], third, *_FRAMES[3:]])


def _third(data):
    """Puts other bytes in the place of record 3."""
    return b"".join([*_FRAMES[:2], frame(data), *_FRAMES[3:]])


def header(length):
    data = struct.pack("<Q", length)
    return data + struct.pack("<I", masked_crc(data))


@dataclass(frozen=True)
class Damage:
    """One damaged file; of record 3 if nothing else is said.

    Attributes:
      content: its bytes, or what they are compressed from.
      kind: of the error.
      good: numbers of the records that are ingested.
      lost: bytes that cannot be read; None where they are estimated.
      data: the bad record's bytes, if they are known.
      record: its number; 0 for the whole file.
      offset: of its frame.
    """

    content: bytes
    kind: str
    good: list[int] = field(default_factory=lambda: [1, 2, *range(4, 21)])
    lost: int | None = 0
    data: bytes | None = None
    record: int = 3
    offset: int = THIRD


_FIRST_TWO, _ALL = [1, 2], list(range(1, 21))
_REST = len(WHOLE) - THIRD
_TEXT = b"a,b,c\n1,2,3\n" * 9
_FLOAT_ID = encode({"id": [3.5], "text": [b"three"]})
_SEQUENCE = b"\n\x00\x12\x05\n\x03\n\x01a"
_DATA = _flipped(20)[THIRD + 12 :][: len(RECORDS[2])]
_ABSURD = WHOLE[:THIRD] + header(1 << 40) + b"x" * 50
_TOO_LARGE = b"".join([*_FRAMES[:2], _LARGE, *_FRAMES[3:]])
# Whatever the file's compression.
DAMAGES = {
    "length": Damage(_flipped(0), "length", _FIRST_TWO, _REST),
    "length's checksum": Damage(_flipped(8), "length", _FIRST_TWO, _REST),
    "data": Damage(_flipped(20), "checksum", data=_DATA),
    "data's checksum": Damage(_flipped(-1), "checksum", data=RECORDS[2]),
    "cut tail": Damage(
        WHOLE[: THIRD + 20], "truncated", _FIRST_TWO, 20, RECORDS[2][:8]
    ),
    "cut header": Damage(WHOLE[: THIRD + 5], "truncated", _FIRST_TWO, 5),
    "too large": Damage(_TOO_LARGE, "too_large", lost=len(_LARGE)),
    "cut, too large": Damage(
        WHOLE[:THIRD] + _LARGE[:-9], "too_large", _FIRST_TWO, len(_LARGE) - 9
    ),
    "absurd length": Damage(_ABSURD, "too_large", _FIRST_TWO, 62),
    "no proto": Damage(_third(b"\xff no proto"), "not_example", data=b"\xff no proto"),
    "other message": Damage(_third(b"\x08\x01"), "not_example", data=b"\x08\x01"),
    "sequence": Damage(_third(_SEQUENCE), "not_example", data=_SEQUENCE),
    "type": Damage(_third(_FLOAT_ID), "type", data=_FLOAT_ID),
    "text": Damage(_TEXT, "not_tfrecord", [], len(_TEXT), record=1, offset=0),
    "a word": Damage(b"hello", "not_tfrecord", [], 5, record=1, offset=0),
}
_CUT = gzip.compress(WHOLE, 0)[: 15 + THIRD + 20]  # Level 0 does not compress.
_END: Any = {"lost": None, "record": 21, "offset": len(WHOLE)}
# Damages of the file as it is.
FILES = {
    "zlib": Damage(zlib.compress(WHOLE), "not_tfrecord", [], None, record=1, offset=0),
    "cut gzip": Damage(_CUT, "compression", _FIRST_TWO, None, RECORDS[2][:8]),
    "cut gzip, its end": Damage(gzip.compress(WHOLE)[:-1], "compression", _ALL, **_END),
    "bytes after gzip": Damage(
        gzip.compress(WHOLE) + b"and more", "compression", _ALL, **_END
    ),
}


def check_damage(room, damage, content):
    """Ingests a damaged file; it is located, and no other record is lost."""
    from sluice.tfrecords.parse_tf_example import parse

    path = room.put("a b\u00e9*.gz", content)
    report = room.ingest(path, max_record_bytes=LIMIT)
    assert room.records() == [RECORDS[number - 1] for number in damage.good]
    assert dict(report.errors) == {damage.kind: 1}
    assert report.corrupt_fraction > 0
    assert damage.lost in (None, report.lost_bytes)
    (error,) = report.first_errors
    place = path, damage.record, damage.offset
    assert (error.path, error.number, error.offset) == place
    (aside,) = room.quarantine()
    features = parse(aside).features.feature
    texts = [
        features[name].bytes_list.value[0].decode()
        for name in ("file", "kind", "reason")
    ]
    assert texts == [path, damage.kind, error.reason]
    assert features["record"].int64_list.value[0] == damage.record
    assert features["offset"].int64_list.value[0] == damage.offset
    known = [] if damage.data is None else [damage.data]
    assert list(features["bytes"].bytes_list.value) == known
