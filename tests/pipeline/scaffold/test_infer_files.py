"""Files, splits, spans and samples, from the names of files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline.scaffold.find_examples import ExampleFiles, find_examples
from pipeline.scaffold.guess_splits import guess_splits
from pipeline.scaffold.sample import Sample
from sample_data.tf_example import encode
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit


def guess(*files: str, others: tuple[str, ...] = (), pattern: str | None = None):
    return guess_splits(ExampleFiles(Path("/data"), pattern, tuple(files), others))


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (
            ["eval-0.tfrecord", "test-0.tfrecord", "train-0.tfrecord"],
            {"train": "train-*", "eval": "eval-*", "test": "test-*"},
        ),
        (
            ["test/a", "train/a", "train/b", "val/a"],
            {"train": "train/*", "eval": "val/*", "test": "test/*"},
        ),
        (
            ["birds_train.tfrecord.gz", "birds_validation.tfrecord.gz"],
            {"train": "birds_train.*", "eval": "birds_validation.*"},
        ),
        (
            ["Eval Data 1", "Train Data 1", "Train Data 2"],
            {"train": "Train *", "eval": "Eval *"},
        ),
        (["a-train", "b-train", "x-dev"], {"train": "*train*", "eval": "x-dev*"}),
        (["mnist-test.gz", "mnist-train.gz"], {"train": "mnist-train.*"}),
        (
            ["train[1]-0", "train[1]-1", "eval[1]-0"],
            {"train": "train*", "eval": "eval*"},
        ),
    ],
)
def test_splits_by_the_names_of_the_files(files, splits):
    found = guess(*files)

    assert found.files is None
    assert dict(found.splits) == {"eval": "mnist-test.*", **splits}


def test_without_an_eval_split_test_is_used_with_a_note():
    found = guess("mnist-test.gz", "mnist-train.gz")

    assert "test" not in found.splits
    assert "there is no eval split" in found.why


@pytest.mark.parametrize(
    ("files", "others", "pattern", "why"),
    [
        (["a.tfrecord", "b.tfrecord"], [], "*", "do not name their split"),
        (["a.tfrecord"], ["a.json"], "*.tfrecord*", "do not name their split"),
        (["part-1", "part-2"], ["a.json"], "part-*", "do not name their split"),
        # A wildcard of the run takes none of these.
        (
            ["a", "b"],
            ["_SUCCESS", "manifest.json", "_old/x"],
            "*",
            "do not name their split",
        ),
        (["1/a", "2/a"], ["_old/a", "2/_SUCCESS"], "*/*", "do not name their split"),
        (["d/{b}"], ["b"], "d/*", "do not name their split"),
        (["train-1", "train-2"], [], "train-*", "only files of train"),
        (["train-1", "eval-1", "rest"], [], "*", "name of rest does not name a split"),
        (["latest-1", "contest-2"], [], "*", "do not name their split"),
        (["only"], ["other"], "only", "do not name their split"),
    ],
)
def test_otherwise_records_are_split_by_hash(files, others, pattern, why):
    found = guess(*files, others=tuple(others))

    assert found.splits == {}
    assert found.files == pattern
    assert why in found.why


@pytest.mark.parametrize(
    ("files", "patterns"),
    [
        (["20240101/p-0", "20240102/p-0"], ["{YYYY}{MM}{DD}/*"]),
        (
            ["2024-01-01/v1/p", "2024-01-02/v12/p"],
            ["{YYYY}-{MM}-{DD}/v{VERSION}/*"],
        ),
        (
            ["span-1/eval-0", "span-1/train-0", "span-12/eval-0", "span-12/train-0"],
            ["span-{SPAN}/train-*", "span-{SPAN}/eval-*"],
        ),
        (["span=007/a", "span=012/a"], ["span={SPAN:3}/*"]),
        (["rides-20240101.gz", "rides-20240102.gz"], ["rides-{YYYY}{MM}{DD}.gz"]),
    ],
)
def test_spans_dates_and_versions(files, patterns):
    found = guess(*files, others=("README.md",))

    assert found.spanned
    assert [*found.splits.values(), *filter(None, [found.files])] == patterns


@pytest.mark.parametrize(
    "files", [["part-00000001", "part-99999999"], ["20241301/a", "20240101/a"]]
)
def test_numbers_that_are_not_dates(files):
    assert not guess(*files).spanned


def test_placeholders_that_were_asked_for_are_kept():
    found = guess(
        "d1/train-0", "d1/val-0", "d22/train-0", "d22/val-0", pattern="d{SPAN}/*"
    )

    assert dict(found.splits) == {"train": "d{SPAN}/train-*", "eval": "d{SPAN}/val-*"}
    assert guess("d1/x", "d2/x", pattern="d{SPAN}/*").files == "d{SPAN}/*"


def test_placeholders_beside_a_set_of_characters_are_kept():
    pattern = "{SPAN}/v[!x]{VERSION:2}/part-[0-9]*"

    found = guess("3/v-01/part-1", "12/v.02/part-2", pattern=pattern)

    assert found.spanned
    assert found.files == pattern


def test_files_without_a_pattern_that_matches_only_them():
    with pytest.raises(UsageError, match="no single file pattern") as caught:
        guess("a/1", "b/c/2", others=("a/2.json", "b/c/3.json", "1"))
    assert "directory of their own" in (caught.value.hint or "")


def make(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_a_pattern_is_split_before_its_first_wildcard(tmp_path):
    make(tmp_path, "my data/a 1", "my data/ä-2", "my data/deep/a-3", "my data/b.json")

    found = find_examples("my data/*", None, tmp_path)

    assert found.directory == tmp_path / "my data"
    assert found.pattern == "*"
    assert found.files == ("a 1", "ä-2")
    assert found.others == ("b.json", "deep/a-3")
    assert found.path("a 1") == tmp_path / "my data" / "a 1"


def test_a_folder_that_no_wildcard_takes_is_left_out_unless_it_is_named(tmp_path):
    make(tmp_path, "a/part-0", "_old/part-0", "a/_tmp/part-0", ".x/part-0")

    assert find_examples(".", None, tmp_path).files == ("a/part-0",)
    assert find_examples("*/part-*", None, tmp_path).files == ("a/part-0",)
    for named in ("_old/part-*", ".x/part-*", "_old"):
        found = find_examples(named, str(tmp_path), tmp_path)
        assert found.files == (f"{named.partition('/')[0]}/part-0",)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("part-[9-0]", "a set of characters"),
        ("{HOUR}/x", "{SPAN}, {SPAN:2}"),
        ("{SPAN}/{SPAN}-{SPAN}", "each placeholder once"),
    ],
)
def test_a_pattern_that_cannot_be_read(tmp_path, pattern, expected):
    make(tmp_path, "part-1")

    with pytest.raises(UsageError, match="is invalid") as caught:
        find_examples(pattern, None, tmp_path)
    assert expected in (caught.value.expected or "")


@pytest.mark.parametrize(
    ("pattern", "below", "files"),
    [
        ("trips/train-*", "trips/train-*", ["trips/train-1"]),
        ("./*/train-*", "./*/train-*", ["trips/train-1"]),
        ("trips", None, ["trips/eval-1", "trips/train-1"]),
        (".", None, ["other", "trips/eval-1", "trips/train-1"]),
    ],
)
def test_a_given_directory_is_used_as_data_dir(tmp_path, pattern, below, files):
    make(tmp_path, "d/trips/train-1", "d/trips/eval-1", "d/other")

    found = find_examples(pattern, "d", tmp_path)

    assert (found.directory, found.pattern) == (tmp_path / "d", below)
    assert list(found.files) == files


def test_a_pattern_in_a_directory_is_below_it(tmp_path):
    make(tmp_path, "d/train-1")

    with pytest.raises(UsageError, match="is invalid") as caught:
        find_examples(str(tmp_path / "d" / "train-1"), "d", tmp_path)
    assert "relative to the data's directory" in (caught.value.expected or "")


@pytest.mark.parametrize(
    ("pattern", "directory", "hint"),
    [
        ("1*", "my data", "--examples 'days/1*' --dir 'my data'"),
        ("days/1", "my dta", "--examples days/1 --dir 'my data'"),
        ("my data/*", None, "--examples 'my data/days/*'"),
        ("mydata", None, "--examples 'my data'"),
        ("nothing-*", None, "name one of these in {here}"),
    ],
)
def test_the_hint_is_a_shell_command(tmp_path, pattern, directory, hint):
    make(tmp_path, "my data/days/1")

    with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
        find_examples(pattern, directory, tmp_path)
    assert (caught.value.hint or "").endswith(hint.format(here=tmp_path))


@pytest.mark.parametrize(
    ("pattern", "directory", "where", "below"),
    [
        ("trips", None, "trips", None),
        ("trips/", None, "trips", None),
        ("trips/train-*", None, "trips", "train-*"),
        ("train-*", "trips", "trips", "train-*"),
        ("*/train-*", None, "", "*/train-*"),
        ("trips/train-1", None, "trips", "train-1"),
        ("trips/train-?", None, "trips", "train-?"),
        ("trips/train-[0-9]", None, "trips", "train-[0-9]"),
    ],
)
def test_pattern_and_directory(tmp_path, pattern, directory, where, below):
    make(tmp_path, "trips/train-1", "trips/.hidden", "trips/_SUCCESS")

    found = find_examples(pattern, directory, tmp_path)

    assert (found.directory, found.pattern) == (tmp_path / where, below)
    assert [Path(file).name for file in found.files] == ["train-1"]


def test_a_directory_name_may_contain_wildcards(tmp_path):
    make(tmp_path, "a[1]/train-1", "a1/train-2")

    found = find_examples("a[1]/*", None, tmp_path)

    assert found.directory == tmp_path / "a[1]"
    assert found.files == ("train-1",)


def test_spans_in_a_pattern(tmp_path):
    make(tmp_path, "d/span-1/x", "d/span-2/x", "d/span-old/x")

    found = find_examples("d/span-{SPAN}/*", None, tmp_path)

    assert found.directory == tmp_path / "d"
    assert found.files == ("span-1/x", "span-2/x")
    # As at the run: a placeholder takes digits only.
    assert guess_splits(found).files == "span-{SPAN}/*"


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("nothing-*", "no file", "name one of these in {here}"),
        ("days/*", "no file", "did you mean: --examples 'days/1/*'"),
        ("missing/*", "no such directory", "name one of these in {here}"),
        ("*.json", "none of them a TFRecord by its name", "as tf.train.Examples with"),
    ],
)
def test_a_pattern_that_matches_nothing(tmp_path, pattern, message, hint):
    make(tmp_path, "a.json", "days/1/b")

    with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
        find_examples(pattern, None, tmp_path)
    assert message in (caught.value.actual or "")
    assert hint.format(here=tmp_path) in (caught.value.hint or "")


def test_remote_examples_are_refused(tmp_path):
    with pytest.raises(UsageError, match="reads local files only"):
        find_examples("gs://bucket/a-*", None, tmp_path)


def write(path: Path, count: int, size: int = 1) -> Path:
    tfrecord.write(path, (encode({"x": [b"v" * size]}) for _ in range(count)))
    return path


def test_a_sample_is_the_first_records_of_each_file(tmp_path):
    files = [write(tmp_path / name, 30) for name in ("a", "b.gz")]

    few, all_of_them = Sample(files, per_file=20), Sample(files)

    assert len(list(few.records())) == 40
    assert not few.complete
    assert few.at == f"{files[1]}, record 20"
    assert len(list(all_of_them.records())) == 60
    assert all_of_them.complete
    assert len(list(all_of_them.records())) == 60


def test_compression_is_detected_by_content(tmp_path):
    plain = write(tmp_path / "a", 3).read_bytes()
    (tmp_path / "train-0.tfrecord").write_bytes(gzip.compress(plain))

    assert len(list(Sample([tmp_path / "train-0.tfrecord"]).records())) == 3


def test_a_sample_of_many_files_is_spread_over_all(tmp_path):
    one = write(tmp_path / "a", 3)
    sample = Sample([one] * 39 + [tmp_path / "not read"] + [one] * 40)

    assert len(sample.read) == 40
    assert sample.per_file == 1000
    assert len(list(sample.records())) == 120
    assert not sample.complete


def test_a_sample_of_large_records_is_bounded_in_bytes(tmp_path):
    file = write(tmp_path / "a", 50, size=1000)

    assert len(list(Sample([file], max_bytes=10_000).records())) == 10


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "a").write_bytes(b"no records at all")

    with pytest.raises(DataError, match="not a TFRecord") as caught:
        list(Sample([tmp_path / "a"]).records())
    assert str(tmp_path / "a") in str(caught.value)
