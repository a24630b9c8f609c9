"""Damaged TFRecord files: each is named, and blocks the run."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sluice.tfrecords.frame_encoding import frame

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Damage:
    """One damaged file.

    Attributes:
      make: returns its bytes; takes the project.
      kind: of the error.
      record: its number.
      good: how many of its records are ingested.
      reason: part of the sentence that says what is wrong.
    """

    make: Callable[[Any], bytes]
    kind: str
    record: int
    good: int
    reason: str


def _flipped(byte: int) -> Callable[[Any], bytes]:
    """Flips a bit of record 3: length at byte 0, the length's CRC at 8, data at 12."""

    def make(trips: Any) -> bytes:
        frames = [*map(frame, trips.examples(start=1000 + byte))]
        third = bytearray(frames[2])
        third[byte] ^= 0x10
        return b"".join([*frames[:2], bytes(third), *frames[3:]])

    return make


def _cut(trips: Any) -> bytes:
    return b"".join(map(frame, trips.examples(start=2000)))[:-7]


DAMAGES = {
    "train-length": Damage(_flipped(0), "length", 3, 2, "length"),
    "train-length-crc": Damage(_flipped(8), "length", 3, 2, "length"),
    "train-data": Damage(_flipped(20), "checksum", 3, 19, "checksum"),
    "train-data-crc": Damage(_flipped(-1), "checksum", 3, 19, "checksum"),
    "train-tail": Damage(_cut, "truncated", 20, 19, "ends"),
}


def _check(trips: Any, ingestion: dict[str, Any], row: dict[str, Any]) -> None:
    """Checks that each damaged file is named, and that no other record is lost.

    Args:
      trips: the project.
      ingestion: the report.
      row: of the data verdict.
    """
    assert ingestion["quarantined"] == len(DAMAGES) == len(row["examples"])
    files = {Path(file["path"]).name: file for file in ingestion["files"]}
    errors = {Path(error["path"]).name: error for error in ingestion["first_errors"]}
    for name, damage in DAMAGES.items():
        path = f"{trips.data / name}, "
        (line,) = [line for line in row["examples"] if line.startswith(path)]
        assert f"record {damage.record} " in line and f": {damage.kind}: " in line
        assert damage.reason in line
        error, file = errors[name], files[name]
        assert (error["kind"], error["record"]) == (damage.kind, damage.record)
        assert (file["records"], file["quarantined"]) == (damage.good, 1)
    # Nothing is lost that is not named.
    good = 20 + sum(damage.good for damage in DAMAGES.values())
    assert ingestion["splits"]["train"]["records"] == good


def test_damaged_records_block_the_run_above_the_limit(trips):
    for name, damage in DAMAGES.items():
        trips.write(name, damage.make(trips))
    record = trips.run()
    row = trips.stopped(record)["overall", None, "corrupt"]
    assert row["policy"] == "examples.max_corrupt_fraction: 0"
    assert "damaged records, all splits" in record.error.message
    assert all(line in trips.shown(record) for line in row["examples"])
    ingestion = trips.ingestion(record)
    _check(trips, ingestion, row)
    lost = {Path(file["path"]).name: file["lost_bytes"] for file in ingestion["files"]}
    # Of the broken length's file, what follows the two good records.
    assert lost["train-length"] == lost["train-length-crc"] > 4000
    assert lost["train-data"] == 0
    assert "bytes cannot be read" in record.error.message

    aside = {
        Path(item["file"].decode()).name: item for item in trips.quarantine(record)
    }
    assert set(aside) == set(DAMAGES)
    assert aside["train-data-crc"]["bytes"] == trips.examples(start=999)[2]
    assert aside["train-data"]["kind"] == b"checksum"
    assert aside["train-data"]["record"] == 3
    assert aside["train-data"]["offset"] == 2 * len(frame(trips.example(1000)))
    assert b"match its checksum" in aside["train-data"]["reason"]

    fraction = ingestion["corrupt_fraction"]
    record = trips.run(f"examples.max_corrupt_fraction={fraction * 0.99}")
    assert trips.stopped(record)["overall", None, "corrupt"]["actual"] == fraction
    record = trips.run_to_gate(f"examples.max_corrupt_fraction={fraction * 1.01}")
    assert record.status == "succeeded", record.error
    assert record.node("StatisticsGen").state == "cached"
    assert " records quarantined (2 checksum, 2 length, 1 truncated)" in trips.shown(
        record
    )


def test_an_image_that_training_cannot_decode_is_a_data_error(trips):
    cut = trips.image()[:-20]
    bad = [*trips.examples(3, start=7000), trips.example(7003, image=[cut])]
    trips.write("train-unchecked", bad)

    record = trips.run("examples.images=null", to_nodes=("Trainer",))

    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.error and record.error.node == "Trainer"
    assert f"Invalid PNG data, size {len(cut)}" in record.error.message


def test_a_split_without_examples_fails_one_check(trips):
    trips.write("eval-0", gzip.compress(b""))
    record = trips.run("examples.max_corrupt_fraction=0.9", "validate.default=ignore")
    rows = trips.stopped(record)
    (row,) = rows.values()
    assert (row["slice"], row["actual"]) == ("eval", 0)
    assert row["policy"] == "always: fail"
    assert "the split 'eval' holds no examples" in record.error.message
