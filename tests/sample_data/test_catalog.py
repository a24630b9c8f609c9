"""Writing, verifying and replacing sample data sets."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from sample_data import catalog
from sample_data.data_set import DataSet, Source, Split
from sluice.errors import DataError, SluiceError, UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

RECORDS = [f"record {number}".encode() for number in range(12)]
TOYS = DataSet(
    name="toys",
    version=1,
    description="toys",
    licence="none",
    gzip=False,
    splits=(Split("train", 7, 3), Split("eval", 3, 1), Split("test", 2, 2)),
    records=lambda: list(RECORDS),
)


def register(monkeypatch, data_set):
    monkeypatch.setitem(catalog._DATA_SETS, data_set.name, data_set)


@pytest.fixture
def toys(monkeypatch, tmp_path):
    register(monkeypatch, TOYS)
    return tmp_path / "data" / "toys"


def snapshot(directory):
    """Content and time of every file, hidden ones included."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in directory.iterdir()
    }


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_names():
    own = ["mnist", "fashion-mnist", "cifar10", "flowers", "images", "csv"]
    assert catalog.names() == ["digits", "taxi", *own]


def test_an_unknown_name_names_the_nearest():
    with pytest.raises(UsageError, match="no sample data set named 'digit'") as caught:
        catalog.make("digit", "data/digit")
    assert caught.value.expected == f"one of {', '.join(catalog.names())}"
    assert caught.value.hint == "sluice data make digits"


@pytest.mark.parametrize("name", ["mnist", "cifar10", "flowers", "images", "csv"])
def test_missing_files_of_a_source_name_the_whole_command(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SluiceError) as caught:
        catalog.make(name, tmp_path / "data", source=Source(tmp_path / "empty"))
    assert str(caught.value.hint).startswith(f"sluice data make {name} --from ")


def test_shards_splits_and_manifest(toys):
    manifest = catalog.make("toys", toys)

    assert [(shard.name, shard.records) for shard in manifest.shards] == [
        ("train-00000-of-00003.tfrecord", 3),
        ("train-00001-of-00003.tfrecord", 2),
        ("train-00002-of-00003.tfrecord", 2),
        ("eval-00000-of-00001.tfrecord", 3),
        ("test-00000-of-00002.tfrecord", 1),
        ("test-00001-of-00002.tfrecord", 1),
    ]
    records = [
        record
        for shard in manifest.shards
        for record in tfrecord.read(toys / shard.name)
    ]
    assert records != RECORDS
    assert sorted(records) == sorted(RECORDS)
    assert catalog.verify(toys) == manifest
    assert sorted(path.name for path in toys.iterdir()) == sorted(
        ["manifest.json", *(shard.name for shard in manifest.shards)]
    )


def test_the_suffix_tells_the_compression(toys, monkeypatch):
    register(monkeypatch, dataclasses.replace(TOYS, gzip=True))
    manifest = catalog.make("toys", toys)

    for shard in manifest.shards:
        assert shard.name.endswith(".tfrecord.gz")
        assert tfrecord.verify(toys / shard.name) == shard.records


def test_compression_does_not_change_the_digest_of_the_records(toys, monkeypatch):
    plain = catalog.make("toys", toys)
    register(monkeypatch, dataclasses.replace(TOYS, gzip=True, version=2))
    compressed = catalog.make("toys", toys)

    assert [shard.records_sha256 for shard in plain.shards] == [
        shard.records_sha256 for shard in compressed.shards
    ]
    assert not {shard.sha256 for shard in plain.shards} & {
        shard.sha256 for shard in compressed.shards
    }


def test_two_makes_give_the_same_bytes(toys):
    other = toys.with_name("other")

    assert catalog.make("toys", toys) == catalog.make("toys", other)
    assert contents(toys) == contents(other)


def test_an_intact_directory_is_not_touched(toys):
    made = catalog.make("toys", toys)
    before = snapshot(toys)

    assert catalog.make("toys", toys) == made
    assert snapshot(toys) == before


def test_another_seed_or_version_makes_it_again(toys, monkeypatch):
    before = catalog.make("toys", toys)
    seeded = catalog.make("toys", toys, seed=18)
    register(monkeypatch, dataclasses.replace(TOYS, version=2))
    newer = catalog.make("toys", toys, seed=18)

    assert (before.seed, seeded.seed) == (catalog.DEFAULT_SEED, 18)
    assert before.shards != seeded.shards
    assert (newer.version, newer.shards) == (2, seeded.shards)


def test_the_same_directory_for_another_data_set(toys, monkeypatch):
    catalog.make("toys", toys)
    register(monkeypatch, dataclasses.replace(TOYS, name="games"))

    assert catalog.make("games", toys).data_set == "games"


def truncate(directory):
    path = directory / "train-00001-of-00003.tfrecord"
    path.write_bytes(path.read_bytes()[:-5])


def cut_between_records(directory):
    path = directory / "train-00001-of-00003.tfrecord"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(directory):
    path = directory / "eval-00000-of-00001.tfrecord"
    content = bytearray(path.read_bytes())
    content[-8] ^= 1
    path.write_bytes(content)


def remove_a_shard(directory):
    directory.joinpath("test-00001-of-00002.tfrecord").unlink()


def add_a_shard(directory):
    tfrecord.write(directory / "train-00000-of-00001.tfrecord", [b"stray"])


def remove_the_manifest(directory):
    directory.joinpath("manifest.json").unlink()


def empty_the_manifest(directory):
    directory.joinpath("manifest.json").write_text("")


DAMAGES = [
    truncate,
    cut_between_records,
    flip_a_bit,
    remove_a_shard,
    add_a_shard,
    remove_the_manifest,
    empty_the_manifest,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_data_set_is_rewritten(toys, damage):
    made = catalog.make("toys", toys)
    intact = contents(toys)
    damage(toys)

    with pytest.raises(DataError) as caught:
        catalog.verify(toys)
    changed = intact.keys() ^ contents(toys).keys() | {
        name for name, content in contents(toys).items() if intact.get(name) != content
    }
    assert any(name in str(caught.value) for name in changed)
    assert catalog.make("toys", toys) == made
    assert contents(toys) == intact


def test_a_manifest_without_shards_is_not_intact(toys):
    made = catalog.make("toys", toys)
    dataclasses.replace(made, shards=()).save(toys)

    assert catalog.make("toys", toys) == made


def test_a_directory_with_other_files_is_never_replaced(toys):
    toys.mkdir(parents=True)
    toys.joinpath("notes.txt").write_text("mine")
    tfrecord.write(toys / "train-of-mine", [b"mine"])
    before = snapshot(toys)

    with pytest.raises(UsageError, match="contains other files too") as caught:
        catalog.make("toys", toys)
    assert caught.value.examples == ("notes.txt", "train-of-mine")
    assert snapshot(toys) == before


def test_a_file_in_the_way(toys):
    toys.parent.mkdir()
    toys.write_text("mine")

    with pytest.raises(UsageError, match="toys cannot be written") as caught:
        catalog.make("toys", toys)
    assert caught.value.where == str(toys)
    assert caught.value.actual == "Not a directory"
    assert toys.read_text() == "mine"


def test_files_for_a_data_set_of_a_package(toys, tmp_path):
    with pytest.raises(UsageError, match="ships with a package"):
        catalog.make("toys", toys, source=Source(tmp_path))
    assert not toys.exists()


def test_a_link_stays_a_link(toys, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    toys.parent.mkdir()
    toys.symlink_to(disk)
    catalog.make("toys", toys)
    truncate(toys)
    catalog.make("toys", toys)

    assert toys.is_symlink()
    catalog.verify(disk)


def test_a_source_that_fails_leaves_the_old_data(toys, monkeypatch):
    made = catalog.make("toys", toys)
    before = snapshot(toys)

    def records():
        raise RuntimeError("no source")

    register(monkeypatch, dataclasses.replace(TOYS, records=records))
    with pytest.raises(RuntimeError, match="no source"):
        catalog.make("toys", toys, seed=18)
    assert snapshot(toys) == before
    assert catalog.verify(toys) == made
    assert [path.name for path in toys.parent.iterdir()] == [".toys.lock", "toys"]


def test_a_failed_rename_brings_the_old_data_back(toys, monkeypatch):
    catalog.make("toys", toys)
    before = snapshot(toys)
    rename = Path.rename

    def fail(self, target):
        if self.name == ".toys.part":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(UsageError, match="Input/output error"):
        catalog.make("toys", toys, seed=18)
    assert snapshot(toys) == before


def test_nothing_heavy_is_imported():
    code = """
import sys
from sample_data import catalog, taxi
assert taxi._source().is_file()
print({"tensorflow", "tfx", "apache_beam", "sklearn", "numpy"} & sys.modules.keys())
"""
    root = Path(catalog.__file__).parents[1]
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=root, check=True, capture_output=True
    )
    assert process.stdout == b"set()\n"
