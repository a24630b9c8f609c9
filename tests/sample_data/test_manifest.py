"""Manifest of a data set: saving, loading, checking."""

from __future__ import annotations

import json

import pytest

from sample_data.manifest import MANIFEST_FILE, Manifest, Shard
from sluice.errors import DataError
from sluice.storage import digest
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit


@pytest.fixture
def directory(tmp_path):
    shards = []
    for name, split in (("train-0", "train"), ("train-1", "train"), ("eval-0", "eval")):
        path = tmp_path / name
        records = tfrecord.write(path, [b"one", b"two"])
        size = path.stat().st_size
        shards.append(Shard(name, split, records, size, digest.of_file(path), "-"))
    Manifest("toys", version=1, seed=3, shards=tuple(shards)).save(tmp_path)
    return tmp_path


def test_what_is_saved_is_loaded(directory):
    manifest = Manifest.load(directory)

    assert (manifest.data_set, manifest.version, manifest.seed) == ("toys", 1, 3)
    assert [shard.name for shard in manifest.shards] == ["train-0", "train-1", "eval-0"]
    assert (manifest.records("train"), manifest.records("eval")) == (4, 2)
    manifest.check(directory)


def test_files_of_no_split_do_not_matter(directory):
    directory.joinpath("README").touch()
    directory.joinpath("training").touch()

    Manifest.load(directory).check(directory)


def test_a_missing_file(directory):
    directory.joinpath("train-1").unlink()

    with pytest.raises(DataError, match="the data set toys is missing") as caught:
        Manifest.load(directory).check(directory)
    assert caught.value.where == str(directory / "train-1")
    assert caught.value.expected == "2 records, 38 bytes"
    assert caught.value.hint == "sluice data make toys"


def test_a_truncated_file_is_named_with_its_record(directory):
    path = directory / "eval-0"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(DataError, match="is truncated") as caught:
        Manifest.load(directory).check(directory)
    assert caught.value.where == f"{path}, record 2 (at byte 19)"


def test_a_file_cut_between_two_records(directory):
    path = directory / "eval-0"
    path.write_bytes(path.read_bytes()[:19])

    with pytest.raises(DataError, match="the data set toys has changed") as caught:
        Manifest.load(directory).check(directory)
    assert caught.value.where == str(path)
    assert "expected: 2 records" in str(caught.value)
    assert "found:    1 records" in str(caught.value)


def test_an_unlisted_file_that_a_pattern_would_take(directory):
    directory.joinpath("eval-1").touch()

    with pytest.raises(DataError, match="not in the manifest") as caught:
        Manifest.load(directory).check(directory)
    assert caught.value.where == str(directory / "eval-1")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, "no such file"),
        ("", "Expecting value"),
        ("[]", "not a JSON object"),
        ("{}", "no key 'format'"),
        ('{"format": 2}', "format 2"),
        ('{"format": 1, "shards": [], "data_set": "toys"}', "missing 2 required"),
        ('{"format": 1, "shards": [{"colour": 1}]}', "unexpected keyword"),
    ],
)
def test_an_unreadable_manifest(tmp_path, content, found):
    path = tmp_path / MANIFEST_FILE
    if content is not None:
        path.write_text(content)

    with pytest.raises(DataError, match="no readable manifest") as caught:
        Manifest.load(tmp_path)
    assert caught.value.where == str(path)
    assert found in str(caught.value)


def test_the_manifest_is_indented_json(directory):
    content = json.loads(directory.joinpath(MANIFEST_FILE).read_text())

    assert content["format"] == 1
    assert content["shards"][0] == {
        "name": "train-0",
        "split": "train",
        "records": 2,
        "size_bytes": 38,
        "sha256": digest.of_file(directory / "train-0"),
        "records_sha256": "-",
    }
