"""Duplicate files, incomplete sets of shards, and manifests."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from components.tfrecord_gen.spans.window import SourceFile
from sample_data import catalog
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit


def shard(name, data, records):
    digest = sha256(data).hexdigest()
    return {"name": name, "split": "train", "records": records, "sha256": digest}


def test_the_same_content_twice(room, make):
    data = make.shard(make.examples(3))
    paths = [room.put("a", data), room.put("b/c", data), room.put("d", data + data)]

    (problem,) = room.ingest(*paths).problems

    assert (problem.kind, problem.path) == ("duplicate_shard", paths[1])
    assert paths[0] in problem.actual


@pytest.mark.parametrize("compression", ["gzip", "members"])
def test_the_same_content_compressed_in_another_way(room, make, compression):
    records = make.examples(30)
    first = room.put("a", make.shard(records))
    second = room.put("b", make.shard(records, compression))
    other = room.put("c", make.shard(make.examples(30, 1), compression))

    (problem,) = room.ingest(first, other, second).problems

    assert (problem.kind, problem.path) == ("duplicate_shard", second)
    assert problem.actual == f"the content of {first} with another compression"


def test_a_checksum_that_two_contents_share_makes_no_duplicate(room, make, monkeypatch):
    from sluice.tfrecords import input_stream

    monkeypatch.setattr(input_stream.google_crc32c, "extend", lambda *_: 7)
    contents = [make.framed(make.examples(3, start)) for start in (10, 20)]
    paths = [
        room.put("a", contents[0]),
        room.put("b", make.gzipped(contents[1])),
    ]

    assert len(set(map(len, contents))) == 1
    assert room.ingest(*paths).problems == ()


def test_the_manifest_that_comes_with_sample_data_is_understood(tmp_path, make):
    """A shard that is cut between two records is a sound file: only it can tell."""
    folder = tmp_path / "digits"
    catalog.make("digits", folder)
    paths = sorted(folder.glob("train-*"))
    files = tuple(SourceFile(str(path), "train") for path in paths)
    whole = make.room(tmp_path).ingest_files(files, ("train",))
    assert (whole.problems, whole.quarantined) == ((), 0)

    tfrecord.write(paths[0], list(tfrecord.read(paths[0]))[:-1])
    (other := tmp_path / "other").mkdir()
    report = make.room(other).ingest_files(files, ("train",))

    (problem,) = report.problems
    assert (problem.kind, problem.path) == ("manifest", str(paths[0]))
    assert (report.quarantined, report.records) == (0, whole.records - 1)


def test_the_same_file_in_two_splits(room, make):
    path = room.put("a", make.shard(make.examples(3)))
    files = (SourceFile(path, "train"), SourceFile(path, "eval"))

    (problem,) = room.ingest_files(files, ("train", "eval")).problems

    assert problem.kind == "duplicate_shard"


def test_shards_without_records_are_not_duplicates(room, make):
    paths = [room.put(name, make.gzipped(b"")) for name in "ab"]

    assert room.ingest(*paths).problems == ()


def test_a_set_that_lacks_files(room, make):
    names = [f"train-{index:05d}-of-00010.gz" for index in (0, 1, 9)]
    paths = [
        room.put(name, make.shard(make.examples(2, index)))
        for index, name in enumerate(names)
    ]

    (problem,) = room.ingest(*paths).problems

    assert problem.kind == "missing_shard"
    assert problem.path.endswith("train-*-of-00010.gz")
    assert problem.expected == "10 files"
    assert problem.actual == (
        "3 files, without 00002, 00003, 00004, 00005, 00006 and 2 more"
    )


def test_a_set_is_whole_if_its_files_lie_there_even_if_they_are_not_taken(room, make):
    paths = [
        room.put(f"train-{index:05d}-of-00003", make.shard(make.examples(2, index)))
        for index in range(3)
    ]

    assert room.ingest(*paths[:1]).problems == ()


def test_a_manifest_that_agrees(room, make):
    data = make.shard(make.examples(3))
    path = room.put("a", data)
    room.put("manifest.json", json.dumps({"shards": [shard("a", data, 3)]}).encode())

    assert room.ingest(path).problems == ()


def test_a_manifest_that_lists_more_or_less(room, make):
    data = make.shard(make.examples(3))
    path = room.put("new", data)
    room.put("manifest.json", json.dumps({"shards": [shard("old", data, 3)]}).encode())

    problems = room.ingest(path).problems

    assert [(problem.kind, problem.path) for problem in problems] == [
        ("manifest", path),
        ("manifest", str(room.inputs / "old")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        '{"shards": 3}',
        '{"shards": [{}]}',
        '{"shards": [{"name": ["a"], "records": 1, "sha256": ""}]}',
        '{"shards": ["a"]}',
    ],
)
def test_a_manifest_of_another_format_is_ignored(room, make, text):
    room.put("manifest.json", text.encode())

    assert room.ingest(room.put("a", make.shard(make.examples(1)))).problems == ()


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda entry: entry.pop("sha256"), "sha256"),
        (lambda entry: entry.update(sha256=None), "sha256"),
        (lambda entry: entry.pop("records"), "records"),
        (lambda entry: entry.update(records="3"), "records"),
        (lambda entry: entry.pop("name"), "name"),
    ],
)
def test_an_entry_that_lacks_something_does_not_end_the_check(
    room, make, change, wrong
):
    data = make.shard(make.examples(3))
    path = room.put("a", data)
    entries = [shard("a", data, 3), shard("gone", data, 3)]
    change(entries[0])
    room.put("manifest.json", json.dumps({"shards": entries}).encode())

    problems = room.ingest(path).problems

    assert {problem.kind for problem in problems} == {"manifest"}
    first = problems[0]
    assert first.path == str(room.inputs / "manifest.json")
    assert first.what == "An entry of the manifest cannot be used."
    assert first.actual.startswith("entry 1") and f"without {wrong}" in first.actual
    assert problems[-1].path == str(room.inputs / "gone")


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe\x00", b"[" * 100_000])
def test_a_damaged_manifest(room, make, data):
    room.put("manifest.json", data)

    (problem,) = room.ingest(room.put("a", make.shard(make.examples(1)))).problems

    assert (problem.kind, problem.what) == ("manifest", "The manifest cannot be read.")


def test_a_manifest_whose_count_is_not_that_of_the_records(room, make):
    data = make.shard(make.examples(3))
    path = room.put("a", data)
    room.put("manifest.json", json.dumps({"shards": [shard("a", data, 4)]}).encode())

    (problem,) = room.ingest(path).problems

    assert (problem.kind, problem.path) == ("manifest", path)
    assert problem.expected.startswith("4 records")
