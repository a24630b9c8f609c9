"""Files, and splits from their names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.scaffold.find_splits import ExampleFiles, find_examples, guess_splits
from sluice.errors import UsageError

pytestmark = pytest.mark.unit


def guess(*files, others=(), pattern=None):
    return guess_splits(ExampleFiles(Path("/data"), pattern, files, tuple(others)))


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (["eval-0.gz", "train-0.gz"], {"train": "train-*", "eval": "eval-*"}),
        (
            ["test/a", "train/a", "train/b", "val/a"],
            {"train": "train/*", "eval": "val/*", "test": "test/*"},
        ),
        (["b_train", "b_validation"], {"train": "b_train*", "eval": "b_validation*"}),
        (["a-train", "b-train", "x-dev"], {"train": "*train*", "eval": "x-dev*"}),
        # A config needs an eval split.
        (["m-test.gz", "m-train.gz"], {"train": "m-train.*", "eval": "m-test.*"}),
        (["train[1]-0", "eval[1]-0"], {"train": "train*", "eval": "eval*"}),
        (["train.parquet", "test.csv"], {"train": "train.*", "eval": "test.*"}),
        # As TensorFlow Datasets names them.
        (
            ["x-train.tfrecord-00000-of-00002", "x-test.tfrecord-00000-of-00001"],
            {"train": "x-train.*", "eval": "x-test.*"},
        ),
    ],
)
def test_splits_by_the_names_of_the_files(files, splits):
    found = guess(*files)

    assert found.files is None
    assert dict(found.splits) == splits
    without = not any(re.search("eval|val|dev", file) for file in files)
    assert ("there is no eval split" in found.why) == without


NAMELESS = "do not name their split"


@pytest.mark.parametrize(
    ("files", "others", "pattern", "why"),
    [
        (["a.tfrecord", "b.tfrecord"], [], "*", NAMELESS),
        (["a.tfrecord"], ["a.json"], "*.tfrecord*", NAMELESS),
        # A wildcard of the run takes none of these.
        (["a", "b"], ["_SUCCESS", "manifest.json", "_old/x"], "*", NAMELESS),
        (["1/a", "2/a"], ["_old/a", "2/_SUCCESS"], "*/*", NAMELESS),
        (["d/{b}"], ["b"], "d/*", NAMELESS),
        (["train-1", "train-2"], [], "train-*", NAMELESS),
    ],
)
def test_otherwise_records_are_split_by_hash(files, others, pattern, why):
    found = guess(*files, others=others)

    assert found.splits == {}
    assert found.files == pattern
    assert why in found.why


@pytest.mark.parametrize(
    ("pattern", "files", "patterns"),
    [
        ("d{SPAN}/*", ["d1/train-0", "d1/val-0"], ["d{SPAN}/train-*", "d{SPAN}/val-*"]),
        (
            "{SPAN}/v[!x]{VERSION:2}/part-[0-9]*",
            ["3/v-01/part-1", "12/v.02/part-2"],
            ["{SPAN}/v[!x]{VERSION:2}/part-[0-9]*"],
        ),
    ],
)
def test_placeholders_of_the_pattern_are_kept(pattern, files, patterns):
    found = guess(*files, pattern=pattern)

    assert found.window == 1
    assert [*found.splits.values(), *filter(None, [found.files])] == patterns


@pytest.mark.parametrize(
    ("folders", "spelt", "window"),
    [
        (["2026-11-29", "2026-11-30"], "{YYYY}-{MM}-{DD}", 2),
        (["x_20261130"], "x_{YYYY}{MM}{DD}", 1),
        (["year=2026/month=01/day=31"], "year={YYYY}/month={MM}/day={DD}", 1),
        (["2026/02/01", "2026/02/02", "2026/03/01"], "{YYYY}/{MM}/{DD}", 3),
        (["day-9", "day-10"], "day-{SPAN}", 2),
        # A month is no day, nor is a number of other things, nor are all of these days.
        (["2026-13-01", "2026-12-01"], "*", 0),
        (["2026-11"], "2026-11", 0),
        (["shard-1", "shard-2"], "*", 0),
        (["2026-11-29", "latest"], "*", 0),
        # No pattern takes both.
        (["2026-11-29", "20261130"], "*", 0),
    ],
)
@pytest.mark.parametrize("names", [("train-0", "eval-0"), ("part-0", "part-1")])
def test_folders_that_look_like_days_become_spans(folders, spelt, window, names):
    found = guess(*[f"{folder}/{name}" for folder in folders for name in names])

    assert found.window == window
    patterns = ["train-*", "eval-*"] if names[0] == "train-0" else ["*"]
    written = [*found.splits.values(), *filter(None, [found.files])]
    assert written == [f"{spelt}/{pattern}" for pattern in patterns]


def make(directory, *names):
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


@pytest.mark.parametrize(
    ("pattern", "where", "below", "files"),
    [
        ("trips", "trips", None, ["train-1"]),
        ("trips/train-?", "trips", "train-?", ["train-1"]),
        ("*/train-*", "", "*/train-*", ["a[1]/train-1", "trips/train-1"]),
        ("trips/train-1", "trips", "train-1", ["train-1"]),
        ("a[1]", "a[1]", None, ["train-1"]),
        ("tables", "tables", None, ["a.csv.gz", "b.parquet"]),
    ],
)
def test_pattern_and_directory(tmp_path, pattern, where, below, files):
    make(tmp_path, "trips/train-1", "a[1]/train-1")
    make(tmp_path, "tables/a.csv.gz", "tables/b.parquet", "trips/labels.csv")
    make(tmp_path, "trips/.hidden", "trips/_SUCCESS", "trips/a.json", "trips/_tmp/x")

    found = find_examples(pattern, tmp_path)

    assert (found.directory, found.pattern) == (tmp_path / where, below)
    assert list(found.files) == files
    assert not set(found.files) & set(found.others)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("part-[9-0]", "a set of characters"),
        ("{SPAN}/{SPAN}-{SPAN}", "each placeholder once"),
        ("gs://bucket/a-*", "reads local files only"),
        ("dayz", "'dayz' matches no TFRecord"),
        ("*.json", "matches no TFRecord, Parquet or CSV file"),
    ],
)
def test_a_pattern_that_finds_nothing(tmp_path, pattern, says):
    make(tmp_path, "a.json", "days/1/b")

    with pytest.raises(UsageError) as caught:
        find_examples(pattern, tmp_path)
    assert says in str(caught.value)
