"""Ingestion: shards, hashed splits, quarantine and report."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen import quarantine as quarantine_module
from components.tfrecord_gen.settings import HashSplits, LabelCheck
from sample_data.tf_example import encode
from sluice.tfrecords.frame_encoding import frame
from sluice.tfrecords.parse_tf_example import parse
from tests.kit.ingestion import examples, framed, shard

pytestmark = pytest.mark.unit

THREE = HashSplits(train=2, eval=1, test=1)
SPLITS = ("train", "eval", "test")


@pytest.fixture
def no_small_files(monkeypatch):
    monkeypatch.setattr(ingest_module, "_SHARD_FROM_BYTES", 1)


@pytest.mark.usefixtures("no_small_files")
def test_a_sound_gzip_file_is_copied_byte_for_byte(room):
    data = gzip.compress(framed(examples(100)), 9, mtime=77)
    report = room.ingest(room.put("whatever", data))
    (path,) = room.shards()
    assert os.path.basename(path) == "data_tfrecord-00000-of-00001.gz"
    assert Path(path).read_bytes() == data
    (file,) = report.files
    assert file.records == 100
    assert (file.size_bytes, file.sha256) == (len(data), sha256(data).hexdigest())
    assert (report.quarantined, report.corrupt_fraction) == (0, 0.0)


def test_small_files_are_merged(room):
    paths, wanted = [], []
    for index in range(1_000):
        records = examples(2, start=index)
        data = shard(records, ("gzip", "none")[index % 2])
        paths.append(room.put(f"small/{index:05d}", data))
        wanted += records
    report = room.ingest(*paths, workers=2)
    assert report.records == 2_000
    assert room.records() == wanted, "in the order of the files"
    assert len(room.shards()) == 1
    assert [file.path for file in report.files] == paths


@pytest.mark.usefixtures("no_small_files")
@pytest.mark.parametrize("hashed", [False, True])
def test_the_output_does_not_depend_on_the_workers(room, hashed, monkeypatch):
    paths = [
        room.put(f"{n}", shard(examples(50, 50 * n), ("gzip", "none")[n % 2]))
        for n in range(8)
    ]
    # The first two fill the quarantine; the parts of later files hold records as well.
    monkeypatch.setattr(quarantine_module, "MAX_BYTES", 1200)
    for size in (500, 450, 300, 50, 20):
        paths.append(room.put(f"bad-{size}", framed([b"\xff" * size])))
    options = {"hash_splits": THREE, "splits": SPLITS} if hashed else {}
    outputs = []
    for workers in (1, 3):
        report = room.ingest(*paths, workers=workers, **options)
        files = sorted(path for path in Path(room.out).rglob("*") if path.is_file())
        outputs.append((report, {path: path.read_bytes() for path in files}))
    assert outputs[0] == outputs[1]


def test_hashed_by_a_feature_no_user_is_split(room):
    records = [
        encode({"user": [f"user {n % 37}".encode()], "n": [n]}) for n in range(1000)
    ]
    bad = [encode({"n": [1]}), encode({"user": [1.5]}), b"\n\x0a\n\x08\n\x04user\x12\0"]
    by_user = HashSplits(train=8, eval=1, test=1, by="user")
    path = room.put("a", shard([*bad, *records]))
    report = room.ingest(path, splits=SPLITS, hash_splits=by_user)
    users = Counter(
        user
        for split in SPLITS
        for user in {
            parse(data).features.feature["user"].bytes_list.value[0]
            for data in room.records(split)
        }
    )
    assert len(users) == 37 and set(users.values()) == {1}
    assert dict(report.errors) == {"no_partition_feature": 3}
    (reason,) = {error.reason for error in report.first_errors}
    assert reason == "the record has no bytes and no int64 in the feature 'user'"
    assert report.records == report.files[0].records == 1000


def test_bad_records_are_counted_by_their_bytes_and_files(room):
    frames = [frame(data) for data in examples(100)]
    whole = b"".join(frames)
    lost = len(whole) - sum(map(len, frames[:50]))
    broken = b"".join(frames[:50]) + b"\xff" * 12 + b"".join(frames[50:])[12:]
    report = room.ingest(room.put("a", broken))
    assert (report.records, report.quarantined, report.lost_bytes) == (50, 1, lost)
    assert report.corrupt_fraction == pytest.approx(lost / len(whole))
    # A destroyed file may have few bytes, and counts as a file.
    report = room.ingest(room.put("good", whole), room.put("b", b"hello"))
    assert (report.records, report.corrupt_fraction) == (100, 0.5)


CODES = {"feature": "y", "values": (10, 20, 40)}
TEXTS = {"feature": "y", "values": ("a", "b")}
PLACES = {"feature": "y", "values": (0, 1)}
ONE_HOT = PLACES | {"is_one_hot": True}


@pytest.mark.parametrize(
    ("check", "good", "bad", "why"),
    [
        (CODES, [40], [15], "'y' is 15, none of 10, 20, 40"),
        (PLACES, [1.0], [0.1], "'y' is 0.1, none of 0, 1"),
        (PLACES, [0.0], [float("nan")], "'y' is nan, none of"),
        (TEXTS, [b"a"], [b"\xe4"], "is 1 bytes that are not text, none of a, b"),
        (ONE_HOT, [0, 1, 0], [0, 1, 1], "'y' has 2 ones, where one class has a 1"),
    ],
)
def test_a_label_that_is_no_class_is_named(room, check, good, bad, why):
    label = LabelCheck.model_validate(check)
    records = [encode({"x": [n], "y": good}) for n in range(20)]
    records[6] = encode({"x": [6], "y": bad})
    records[8] = encode({"x": [8]})  # The schema decides about missing labels.
    report = room.ingest(room.put("a", framed(records)), label=label)
    assert room.records() == records[:6] + records[7:]
    (error,) = report.first_errors
    assert (error.kind, error.number) == ("label", 7)
    assert why in error.reason


def test_types_are_the_schemas_or_else_the_first_records(room):
    records = [encode({"a": [1], "b": [n]}) for n in range(5)]
    paths = [room.put("a", framed(records[:3])), room.put("b", framed(records[3:]))]
    records[4] = encode({"a": [1], "b": [0.5], "new": [b"as none before"]})
    paths[1] = room.put("b", framed(records[3:]))
    report = room.ingest(*paths, workers=2)
    (error,) = report.first_errors
    assert (error.path, error.number, error.kind) == (paths[1], 2, "type")
    what = "feature 'b' is a float_list; the schema, or else the first record, has"
    assert error.reason == f"{what} int64_list"
    report = room.ingest(*paths, types={"b": "float_list"})
    assert report.errors == {"type": 4} and room.records() == records[4:]


def test_the_quarantine_is_bounded_and_says_so(room, monkeypatch):
    monkeypatch.setattr(quarantine_module, "MAX_RECORDS", 3)
    report = room.ingest(room.put("a", framed([b"junk"] * 9)))
    assert (report.quarantined, report.quarantine_cut) == (9, True)
    assert len(room.quarantine()) == 3
