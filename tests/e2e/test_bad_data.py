"""Damaged TFRecord files and images: each is named, and blocks the run."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from components.data_verdict.ingestion_findings import ingestion_findings
from sluice.storage import digest
from sluice.tfrecords.frame_encoding import frame

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Damage:
    """One damaged file.

    Attributes:
      make: returns its bytes; takes the project.
      kind: of the error.
      record: its number; 0 for the whole file.
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


def _with_image(data: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def make(trips: Any) -> bytes:
        image = data(trips)
        bad = trips.example(5000 + len(image), image=[image])
        records = trips.examples(3, start=6000 + len(image))
        return b"".join(map(frame, [*records, bad]))

    return make


def _png_bomb(trips: Any) -> bytes:
    """An image of less than 100 bytes whose header says 50,000 x 50,000 pixels."""
    whole = trips.image()
    header = b"IHDR" + struct.pack(">IIBBBBB", 50_000, 50_000, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return whole[:8] + chunk + whole[33:]


GROUPS = {
    "framing": {
        "train-length": Damage(_flipped(0), "length", 3, 2, "length"),
        "train-length-crc": Damage(_flipped(8), "length", 3, 2, "length"),
        "train-data": Damage(_flipped(20), "checksum", 3, 19, "checksum"),
        "train-data-crc": Damage(_flipped(-1), "checksum", 3, 19, "checksum"),
        "train-tail": Damage(_cut, "truncated", 20, 19, "ends"),
    },
    "images": {
        "train-cut.jpg": Damage(
            _with_image(lambda trips: trips.image("JPEG", (32, 32))[:400]),
            "image",
            4,
            3,
            "a JPEG image that does not decode",
        ),
        "train-bomb.png": Damage(
            _with_image(_png_bomb), "image", 4, 3, "50,000 x 50,000 pixels"
        ),
        "train-gray.bmp": Damage(
            _with_image(lambda trips: trips.image("BMP")),
            "image",
            4,
            3,
            "a BMP image that does not decode to 1 channel",
        ),
        "train-gif.jpg": Damage(
            _with_image(lambda trips: trips.image("GIF")), "image", 4, 3, "GIF image"
        ),
        "train-text": Damage(
            _with_image(lambda _: b"no image"), "image", 4, 3, "not a PNG"
        ),
    },
}


def _write(trips: Any, group: str) -> None:
    for name, damage in GROUPS[group].items():
        trips.write(name, damage.make(trips))


def _check(
    trips: Any, group: str, ingestion: dict[str, Any], row: dict[str, Any]
) -> None:
    """Checks that each file of a group is named, and that no other record is lost.

    Args:
      trips: the project.
      group: of the files, which have been ingested.
      ingestion: the report.
      row: of the data verdict.
    """
    damages = GROUPS[group]
    assert ingestion["quarantined"] == len(damages) == len(row["examples"])
    files = {Path(file["path"]).name: file for file in ingestion["files"]}
    errors = {Path(error["path"]).name: error for error in ingestion["first_errors"]}
    for name, damage in damages.items():
        place = f"record {damage.record} " if damage.record else "whole file"
        path = f"{trips.data / name}, "
        (line,) = [line for line in row["examples"] if line.startswith(path)]
        assert place in line and f": {damage.kind}: " in line
        assert damage.reason in line
        error, file = errors[name], files[name]
        assert (error["kind"], error["record"]) == (damage.kind, damage.record)
        assert (file["records"], file["quarantined"]) == (damage.good, 1)
    # Nothing is lost that is not named.
    good = 20 + sum(damage.good for damage in damages.values())
    assert ingestion["splits"]["train"]["records"] == good


def test_damaged_records_block_the_run_above_the_limit(trips):
    _write(trips, "framing")
    record = trips.run()
    row = trips.stopped(record)["overall", None, "corrupt"]
    assert row["policy"] == "examples.max_corrupt_fraction: 0"
    assert "damaged records, all splits" in record.error.message
    assert all(line in trips.shown(record) for line in row["examples"])
    ingestion = trips.ingestion(record)
    _check(trips, "framing", ingestion, row)
    lost = {Path(file["path"]).name: file["lost_bytes"] for file in ingestion["files"]}
    # Of the broken length's file, what follows the two good records.
    assert lost["train-length"] == lost["train-length-crc"] > 4000
    assert lost["train-data"] == 0
    assert "bytes cannot be read" in record.error.message

    aside = {
        Path(item["file"].decode()).name: item for item in trips.quarantine(record)
    }
    assert set(aside) == set(GROUPS["framing"])
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


def test_unusable_images_are_named(trips):
    _write(trips, "images")
    report = trips.ingest()
    (finding,) = ingestion_findings(report, 0.0, "overall")
    assert finding.kind == "corrupt"
    _check(trips, "images", asdict(report), asdict(finding))


def test_an_image_that_training_cannot_decode_is_a_data_error(trips):
    cut = trips.image()[:-20]
    bad = [*trips.examples(3, start=7000), trips.example(7003, image=[cut])]
    trips.write("train-unchecked", bad)

    record = trips.run("examples.images=null", to_nodes=("Trainer",))

    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.error and record.error.node == "Trainer"
    assert f"Invalid PNG data, size {len(cut)}" in record.error.message


def test_unusual_valid_files_are_ingested_completely(trips):
    """Misleading and unusual file names, several compressions, 10,000 small files."""
    count = 10_000
    for number in range(count):
        small = frame(trips.example(1000 + number))
        trips.write(f"train-small-{number:05}", small)
    frames = [
        b"".join(map(frame, trips.examples(start=n))) for n in range(20_000, 20_140, 20)
    ]
    odd = {
        "train gzip named plain": gzip.compress(frames[0]),
        "train-plain named.gz": frames[1],
        "train-two members.gz": gzip.compress(frames[3][:999])
        + gzip.compress(frames[3][999:]),
        "train-F\u00e4hre \u65e5\u672c [1].tfrecord": frames[4],
        "train-%20#?&'.tfrecord": frames[5],
    }
    for name, content in odd.items():
        trips.write(name, content)
    sizes = [(8, 8), (31, 7), (1, 32)]
    images = [trips.image(kind, size) for kind in ("PNG", "JPEG") for size in sizes]
    trips.write(
        "eval-sizes",
        [trips.example(30_000 + n, image=[data]) for n, data in enumerate(images)],
    )
    report = trips.ingest("data.splits.eval='eval-sizes'", workers=2)
    assert report.splits["train"].records == 20 + count + 20 * len(odd)
    assert report.splits["eval"].records == len(images)
    assert (report.quarantined, report.problems) == (0, ())
    assert ingestion_findings(report, 0.0, "overall") == []


def test_inconsistent_sets_of_files_are_found(trips):
    """Every record is good; digests, shard numbers and the manifest are not."""
    twin = trips.write("train-twin", (trips.data / "train-0").read_bytes())
    trips.write("train-00001-of-00003", trips.examples(start=500))
    whole = b"".join(map(frame, trips.examples(start=600)))
    listed = trips.write("held/eval-0", whole)
    shard = {"name": "eval-0", "records": 20, "sha256": digest.of_file(listed)}
    gone = {"name": "eval-1", "records": 7, "sha256": "0" * 64}
    (trips.data / "held/manifest.json").write_text(
        json.dumps({"shards": [shard, gone]})
    )
    # Cut between two records, so a valid file.
    listed.write_bytes(whole[: 19 * len(whole) // 20])
    report = trips.ingest("data.splits.eval='held/eval*'")
    findings = ingestion_findings(report, 0.0, "overall")
    problems = {finding.kind: finding.examples for finding in findings}
    assert set(problems) == {"duplicate_shard", "missing_shard", "manifest"}
    (line,) = problems["duplicate_shard"]
    assert str(twin) in line and "train-0" in line
    (line,) = problems["missing_shard"]
    assert "train-*-of-00003" in line and "00000, 00002" in line
    cut, missing = problems["manifest"]
    assert f"{listed}: expected 20 records" in cut and "found 19 records" in cut
    assert "eval-1: expected 7 records, found no such file" in missing


def test_a_split_without_examples_fails_one_check(trips):
    trips.write("eval-0", gzip.compress(b""))
    record = trips.run("examples.max_corrupt_fraction=0.9", "validate.default=ignore")
    rows = trips.stopped(record)
    (row,) = rows.values()
    assert (row["slice"], row["actual"]) == ("eval", 0)
    assert row["policy"] == "always: fail"
    assert "the split 'eval' holds no examples" in record.error.message
