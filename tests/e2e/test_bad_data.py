"""Damaged TFRecord files: each is named, and blocks the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice.tfrecords.frame_encoding import frame

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]


def _damaged(trips: Any, byte: int) -> bytes:
    """Flips a bit of record 3: length at byte 0, data at 12."""
    frames = [*map(frame, trips.examples(start=1000 + byte))]
    third = bytearray(frames[2])
    third[byte] ^= 0x10
    return b"".join([*frames[:2], bytes(third), *frames[3:]])


# The byte in each file, the kind of the error, and how many records are ingested.
DAMAGES = {"train-length": (0, "length", 2), "train-data": (20, "checksum", 19)}


def test_damaged_records_block_the_run_above_the_limit(trips):
    for name, (byte, *_) in DAMAGES.items():
        trips.write(name, _damaged(trips, byte))
    record = trips.run()
    row = trips.stopped(record)["overall", None, "corrupt"]
    assert row.policy == "examples.max_corrupt_fraction: 0"
    assert "2 of 63 records are damaged and " in record.error.message
    assert all(line in trips.shown(record) for line in row.examples)
    ingestion = trips.ingestion(record)
    aside = {
        Path(item["file"].decode()).name: item for item in trips.quarantine(record)
    }
    assert set(aside) == set(DAMAGES)
    for name, (_, kind, good) in DAMAGES.items():
        path = f"{trips.data / name}, record 3, "
        (line,) = [line for line in row.examples if line.startswith(path)]
        assert f": {kind}: " in line
        (file,) = [x for x in ingestion["files"] if Path(x["path"]).name == name]
        assert (file["records"], file["quarantined"]) == (good, 1)
        assert (file["lost_bytes"] > 4000) == (kind == "length")
        assert (aside[name]["kind"], aside[name]["record"]) == (kind.encode(), 3)
        offset = sum(map(len, map(frame, trips.examples(2, start=1000))))
        assert aside[name]["offset"] == offset
    # Nothing is lost that is not named.
    assert ingestion["splits"]["train"] == 20 + 2 + 19
    assert "bytes cannot be read" in record.error.message

    fraction = ingestion["corrupt_fraction"]
    record = trips.run(f"examples.max_corrupt_fraction={fraction * 0.99}")
    assert trips.stopped(record)["overall", None, "corrupt"].actual == fraction
    record = trips.run_to_gate(f"examples.max_corrupt_fraction={fraction * 1.01}")
    assert record.status == "succeeded", record.error
    assert record.node("StatisticsGen").state == "cached"
    assert "2 of 63 records are damaged and " in trips.shown(record)


def test_an_image_that_training_cannot_decode_is_a_data_error(trips):
    cut = trips.image()[:-20]
    bad = [*trips.examples(3, start=7000), trips.example(7003, image=[cut])]
    trips.write("train-unchecked", bad)

    record = trips.run("examples.images=null", to_nodes=("Trainer",))

    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.error and record.error.node == "Trainer"
    assert f"Invalid PNG data, size {len(cut)}" in record.error.message
