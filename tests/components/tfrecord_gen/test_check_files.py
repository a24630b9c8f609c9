"""Duplicate files, incomplete sets of shards, and manifests."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from components.tfrecord_gen.input_files import SourceFile
from sample_data import catalog
from sluice.tfrecords import tfrecord
from tests.kit.ingestion import Room, examples, shard

pytestmark = pytest.mark.unit


def entry(name, data, records):
    digest = sha256(data).hexdigest()
    return {"name": name, "split": "train", "records": records, "sha256": digest}


def test_the_same_content_twice(room):
    data = shard(examples(3))
    paths = [room.put("a", data), room.put("b/c", data), room.put("d", data + data)]
    (problem,) = room.ingest(*paths).problems
    assert (problem.kind, problem.path) == ("duplicate_shard", paths[1])
    assert paths[0] in problem.what


def test_files_without_records_are_neither_damaged_nor_duplicates(room):
    """Spark and Beam write one for each partition without records."""
    empty = [room.put(f"part-{n}", b"") for n in range(3)]
    empty += [room.put(f"part-{n}.gz", shard([], "gzip")) for n in range(3, 5)]
    report = room.ingest(*empty, room.put("part-5", shard(examples(3))))
    assert (report.problems, report.quarantined, report.corrupt_fraction) == ((), 0, 0)
    assert (report.records, report.empty_files) == (3, empty)


def test_a_set_that_lacks_files(room):
    paths = [
        room.put(f"train-{index:05d}-of-00010.gz", shard(examples(2, index)))
        for index in (0, 1, 9)
    ]
    (problem,) = room.ingest(*paths).problems
    assert problem.kind == "missing_shard"
    assert problem.path.endswith("train-*-of-00010.gz")
    assert problem.what == (
        "lacks 7 of 10 files: 00002, 00003, 00004, 00005, 00006, ..."
    )


def test_the_manifest_that_comes_with_sample_data_is_understood(tmp_path):
    """A shard that is cut between two records is a sound file: only it can tell."""
    folder = tmp_path / "digits"
    catalog.make("digits", folder)
    paths = sorted(folder.glob("train-*"))
    files = [SourceFile(str(path), "train") for path in paths]
    whole = Room(tmp_path / "a").ingest_files(files, ("train",))
    assert (whole.problems, whole.quarantined) == ((), 0)

    tfrecord.write(paths[0], list(tfrecord.read(paths[0]))[:-1])
    report = Room(tmp_path / "b").ingest_files(files, ("train",))
    (problem,) = report.problems
    assert (problem.kind, problem.path) == ("manifest", str(paths[0]))
    assert (report.quarantined, report.records) == (0, whole.records - 1)


DATA = shard(examples(3))
GOOD = entry("a", DATA, 3)


@pytest.mark.parametrize(
    ("manifest", "wrong"),
    [
        (json.dumps({"shards": [GOOD]}), []),
        (json.dumps({"shards": [entry("old", DATA, 3)]}), ["a", "old"]),
        (json.dumps({"shards": [GOOD | {"records": 4}]}), ["a"]),
        (json.dumps({"shards": [{"name": "a"}, GOOD | {"name": "b"}]}), ["a", "b"]),
        ('{"shards": [{}]}', []),
        ("{", ["manifest.json"]),
    ],
)
def test_a_manifest(room, manifest, wrong):
    path = room.put("a", DATA)
    room.put("manifest.json", manifest.encode())
    problems = room.ingest(path).problems
    assert [(problem.kind, problem.path) for problem in problems] == [
        ("manifest", f"{room.base}/in/{name}") for name in wrong
    ]
