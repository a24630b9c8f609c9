"""Ingestion: shards, quarantine and report."""

from __future__ import annotations

import gzip
import tempfile
from hashlib import sha256
from itertools import chain

import pytest

from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.ingestion import Ingestion
from components.tfrecord_gen.spans.window import SourceFile
from components.tfrecord_gen.writing import quarantine as quarantine_module
from components.tfrecord_gen.writing.ingest_files import Group, ingest_group
from components.tfrecord_gen.writing.quarantine import QuarantineLimit, write_quarantine
from sample_data.tf_example import encode
from sluice.errors import UsageError
from sluice.storage.storage import Storage
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

THREE = HashSplits(train=2, eval=1, test=1)
SPLITS = ("train", "eval", "test")


@pytest.fixture
def no_small_files(monkeypatch):
    monkeypatch.setattr(ingest_module, "_SHARD_FROM_BYTES", 1)


@pytest.mark.usefixtures("no_small_files")
def test_a_sound_gzip_file_is_copied_byte_for_byte(room, make):
    wanted = make.examples(100)
    data = gzip.compress(make.framed(wanted), 9, mtime=77)
    path = room.put("whatever", data)

    report = room.ingest(path)

    (shard,) = room.shards()
    assert shard.name == "data_tfrecord-00000-of-00001.gz"
    assert shard.read_bytes() == data
    (file,) = report.files
    assert (file.records, file.compression) == (100, "gzip")
    assert (file.size_bytes, file.sha256) == (len(data), sha256(data).hexdigest())
    assert (report.quarantined, report.corrupt_fraction) == (0, 0.0)


@pytest.mark.usefixtures("no_small_files")
@pytest.mark.parametrize("compression", ["none", "members"])
def test_other_files_are_written_anew(room, make, compression):
    wanted = make.examples(100)
    report = room.ingest(room.put("a.gz", make.shard(wanted, compression)))

    assert room.records() == wanted
    assert report.splits["train"].shards == 1


def test_every_split_has_a_shard(room, make):
    report = room.ingest(room.put("a", make.shard(make.examples(3))), splits=SPLITS)

    assert [report.splits[split].records for split in SPLITS] == [3, 0, 0]
    for split in ("eval", "test"):
        (shard,) = room.shards(split)
        assert shard.name == "data_tfrecord-00000-of-00001.gz"
        assert gzip.decompress(shard.read_bytes()) == b""


def test_small_files_are_merged(room, make):
    paths, wanted = [], []
    for index in range(10_000):
        records = make.examples(2, start=index)
        compression = ("gzip", "none")[index % 2]
        paths.append(room.put(f"small/{index:05d}", make.shard(records, compression)))
        wanted += records

    report = room.ingest(*paths, workers=2)

    assert report.records == 20_000
    assert room.records() == wanted, "in the order of the files"
    assert len(room.shards()) == 1
    assert [file.path for file in report.files] == paths


@pytest.mark.usefixtures("no_small_files")
@pytest.mark.parametrize("hashed", [False, True])
def test_the_output_does_not_depend_on_the_workers(room, make, hashed):
    paths = [
        room.put(f"{n}", make.shard(make.examples(50, 50 * n), ("gzip", "none")[n % 2]))
        for n in range(8)
    ]
    paths.append(room.put("bad", make.shard(make.examples(5))[:-3]))
    options = {"hash_splits": THREE, "splits": SPLITS} if hashed else {}
    outputs = []
    for workers in (1, 3):
        report = room.ingest(*paths, workers=workers, **options)
        files = {
            str(path.relative_to(room.out)): path.read_bytes()
            for path in sorted(room.out.rglob("*"))
            if path.is_file()
        }
        outputs.append((report, files))

    assert outputs[0] == outputs[1]


def test_hashed_records_land_where_their_bytes_say(room, make):
    wanted = make.examples(400)
    path = room.put("a", make.shard(wanted))

    report = room.ingest(path, splits=SPLITS, hash_splits=THREE)

    parts = {split: room.records(split) for split in SPLITS}
    assert sorted(chain(*parts.values())) == sorted(wanted)
    assert all(
        THREE.split_of(data) == split for split in SPLITS for data in parts[split]
    )
    assert report.splits["train"].records == len(parts["train"]) > 150


def test_hashed_by_a_feature_no_user_is_split(room, make):
    records = [
        encode({"user": [f"user {n % 37}".encode()], "n": [n]}) for n in range(1000)
    ]
    missing = encode({"n": [1]})
    path = room.put("a", make.shard([missing, *records]))
    by_user = HashSplits(train=8, eval=1, test=1, by="user")

    report = room.ingest(path, splits=SPLITS, hash_splits=by_user)

    users = {
        split: {
            parse(data).features.feature["user"].bytes_list.value[0]
            for data in room.records(split)
        }
        for split in SPLITS
    }
    assert sum(map(len, users.values())) == 37
    assert dict(report.errors) == {"no_partition_feature": 1}
    assert report.first_errors[0].reason == "the record has no feature 'user'"
    assert report.records == report.files[0].records == 1000


def test_the_quarantine_is_bounded_and_says_so(room, make, monkeypatch):
    defaults = quarantine_module.QuarantineLimit.__init__.__defaults__
    assert defaults == (10_000, 256 << 20)
    monkeypatch.setattr(
        quarantine_module.QuarantineLimit.__init__, "__defaults__", (3, 999)
    )

    report = room.ingest(room.put("a", make.framed([b"junk"] * 9)))

    assert (report.quarantined, report.quarantine_cut) == (9, True)
    assert 1 <= len(room.quarantine()) <= 3


def test_the_quarantine_does_not_depend_on_who_reads_which_file(
    room, make, monkeypatch
):
    """Sizes: one process keeps 1, 2 and no more; two keep what comes later as well."""
    monkeypatch.setattr(
        quarantine_module.QuarantineLimit.__init__, "__defaults__", (9, 999)
    )
    sizes = {"a": 500, "b": 450, "c": 300, "d": 50, "e": 20}
    files = tuple(
        SourceFile(room.put(name, make.framed([b"\xff" * size])), "train")
        for name, size in sizes.items()
    )
    groups = [Group(index, (file,)) for index, file in enumerate(files)]
    kept: list[list[bytes]] = []
    for shares in ([groups], [groups[::2], groups[1::2]], [groups[:1], groups[1:]]):
        out = room.out / str(len(kept))
        out.mkdir(parents=True)
        for share in shares:
            room_left = QuarantineLimit()
            for group in share:
                path = f"{out}/part-{{}}"
                dirs = {"train": str(out)}
                ingest_group(Ingestion(files), dirs, path, room_left, group)
        write_quarantine(str(out), [f"{out}/part-{group.index}" for group in groups])
        path = out / "quarantine.tfrecord.gz"
        kept.append(list(tfrecord.read(path)))

    assert kept[0] == kept[1] == kept[2]


def test_a_killed_ingestion_leaves_files_only_in_its_output(room, make, monkeypatch):
    def die(*arguments):
        raise KeyboardInterrupt

    made = []
    folder = tempfile.TemporaryDirectory

    def temporary(**options):
        made.append(options["dir"])
        return folder(**options)

    monkeypatch.setattr(ingest_module.tempfile, "TemporaryDirectory", temporary)
    monkeypatch.setattr(ingest_module, "write_quarantine", die)
    with pytest.raises(KeyboardInterrupt):
        room.ingest(room.put("a", b""))

    assert made == [str(room.out / "quarantine")]
    assert list((room.out / "quarantine").iterdir()) == []


def test_a_missing_file_ends_the_ingestion(room):
    with pytest.raises(UsageError, match="cannot be read"):
        room.ingest(str(room.inputs / "absent"))


@pytest.mark.usefixtures("no_small_files")
def test_a_file_that_changes_while_it_is_read(room, make, monkeypatch):
    path = room.put("a", make.shard(make.examples(9), "members"))
    delete = Storage.delete

    def delete_and_change(storage, copy):
        delete(storage, copy)
        room.put("a", make.shard(make.examples(8), "members"))

    monkeypatch.setattr(Storage, "delete", delete_and_change)
    with pytest.raises(UsageError, match="changed while it was being read"):
        room.ingest(path)
