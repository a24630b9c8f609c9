"""Span selection: complete and skipped spans, versions, errors."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import NoFilesError
from components.tfrecord_gen.spans.window import Span
from sluice.errors import ConfigError, DataError, UsageError
from tests.components.tfrecord_gen.spans.selection import SPLITS, chosen, select, touch

pytestmark = pytest.mark.unit

MARKED = CompleteWhen(marker="_SUCCESS")


def test_the_newest_span_is_by_number_not_by_name(tmp_path):
    touch(tmp_path, "span-9/train-0", "span-9/eval-0")
    touch(tmp_path, "span-10/train-1", "span-10/train-0", "span-10/eval-0")
    window = select(tmp_path)
    assert chosen(window) == [
        "train span-10/train-0",
        "train span-10/train-1",
        "eval span-10/eval-0",
    ]
    assert window.spans == (Span(10),)
    assert {file.span for file in window.files} == {10}
    assert not window.skipped


def test_a_window_is_the_last_spans_oldest_first(tmp_path):
    for number in (1, 2, 4):
        touch(tmp_path, f"span-{number}/train-0", f"span-{number}/eval-0")
    assert [span.number for span in select(tmp_path, window=2).spans] == [2, 4]
    assert [span.number for span in select(tmp_path, window=9).spans] == [1, 2, 4]


def test_a_span_without_a_split_is_skipped(tmp_path):
    touch(tmp_path, "span-1/train-0", "span-1/eval-0", "span-2/train-0")
    window = select(tmp_path)
    assert window.spans == (Span(1),)
    assert [(s.name, s.why) for s in window.skipped] == [
        ("span 2", "no file of split eval")
    ]


def test_splits_in_directories_of_their_own(tmp_path):
    patterns: dict[str | None, str] = {
        "train": "train/{SPAN}/*",
        "eval": "eval/{SPAN}/*",
    }
    touch(tmp_path, "train/1/a", "eval/1/b", "train/2/c")
    window = select(tmp_path, patterns)
    assert chosen(window) == ["train train/1/a", "eval eval/1/b"]
    assert window.skipped[0].why == "no file of split eval"


def test_the_newest_complete_version_of_a_span(tmp_path):
    patterns: dict[str | None, str] = {None: "{YYYY}{MM}{DD}/v{VERSION}/*"}
    touch(tmp_path, "20240101/v1/a", "20240102/v9/b", "20240102/v10/c")
    touch(tmp_path, "20240102/v10/_SUCCESS", "20240102/v9/_SUCCESS", "20240102/v11/d")
    window = select(tmp_path, patterns, complete_when=MARKED)
    assert chosen(window) == ["None 20240102/v10/c"]
    newest = window.newest
    assert newest is not None
    assert str(newest) == "span 2024-01-02, version 10"
    assert (newest.number, newest.version) == (19_724, 10)
    assert window.skipped[0].name == "span 2024-01-02, version 11"
    assert window.skipped[0].why == f"no _SUCCESS in {tmp_path}/20240102/v11"


def test_a_marker_is_never_a_data_file(tmp_path):
    touch(tmp_path, "1/a", "1/DONE", "2/b")
    window = select(
        tmp_path, {None: "{SPAN}/*"}, complete_when=CompleteWhen(marker="DONE")
    )
    assert chosen(window) == ["None 1/a"]


def test_a_span_that_is_being_written_is_taken_when_it_is_complete(tmp_path):
    touch(tmp_path, "span-1/train-0", "span-1/eval-0", "span-1/_SUCCESS")
    seen = []
    steps = ["train-0", "train-1", "eval-0", ".eval-1.tmp", "eval-1", "_SUCCESS"]
    for name in steps:
        touch(tmp_path, f"span-2/{name}")
        window = select(tmp_path, complete_when=MARKED)
        seen.append((window.spans[0].number, len(window.files)))
    assert seen == [(1, 2)] * 5 + [(2, 4)]


def test_quiet_for_s_counts_from_the_last_changed_file(tmp_path):
    quiet = CompleteWhen(quiet_for_s=600)
    touch(tmp_path, "span-1/train-0", "span-1/eval-0", age_s=9_000)
    now_s = time.time()
    with pytest.raises(DataError, match=r"span 1: span-1/\S+ was changed \d s ago"):
        # `utime` has set the time of modification only: the files have just arrived.
        select(tmp_path, complete_when=quiet, now_s=now_s)
    assert select(tmp_path, complete_when=quiet, now_s=now_s + 610).files
    touch(tmp_path, "span-1/eval-1", age_s=-900)
    with pytest.raises(DataError, match="eval-1 was changed 2.. s in the future"):
        select(tmp_path, complete_when=quiet, now_s=now_s + 610)


def test_the_error_lists_what_each_span_lacks(tmp_path):
    for number in range(7):
        touch(tmp_path, f"span-{number}/train-0", f"span-{number}/eval-0")
    with pytest.raises(DataError) as caught:
        select(tmp_path, complete_when=MARKED)
    text = str(caught.value)
    assert "no span of the data is complete" in text
    assert f"span 6: no _SUCCESS in {tmp_path}/span-6" in text
    assert "and 2 more" in text


@pytest.mark.parametrize(
    ("pattern", "file", "missing"),
    [
        ("span-{SPAN}/train-*", "spans-1/train-0", "directory span-{SPAN} in BASE"),
        ("trips/{SPAN}/train-*", "trips/notes", "directory {SPAN} in BASE/trips"),
        ("trips/{SPAN}/train-*", "other/1/train-0", "directory trips in BASE"),
        ("trips/train-{SPAN}", "trips/eval-1", "file train-{SPAN} in BASE/trips"),
        ("trips/*/train-*", "trips/a/eval-0", "file train-* in BASE/trips/a"),
        ("trips/train-*", "eval-0", "directory trips in BASE"),
    ],
)
def test_a_pattern_without_files_names_the_missing_directory(
    tmp_path, pattern, file, missing
):
    touch(tmp_path, file)
    with pytest.raises(NoFilesError) as caught:
        select(tmp_path, {"train": pattern})
    error = caught.value
    expected = f"a {missing.replace('BASE', str(tmp_path))}"
    directory = Path(expected.rpartition(" in ")[2])
    assert error.what == f"no file matches the pattern {pattern!r}"
    assert error.expected == expected
    assert list(error.examples) == os.listdir(directory)


def test_a_missing_data_directory_is_named(tmp_path):
    with pytest.raises(NoFilesError, match="nowhere is empty or does not exist"):
        select(tmp_path / "nowhere")


def test_patterns_without_placeholders_are_one_set_of_files(tmp_path):
    touch(tmp_path, "train-0", "eval-0")
    patterns: dict[str | None, str] = {"train": "train-*", "eval": "eval-*"}
    window = select(tmp_path, patterns)
    assert chosen(window) == ["train train-0", "eval eval-0"]
    assert window.spans == ()
    assert window.newest is None
    assert window.files[0].span is None
    with pytest.raises(NoFilesError, match=r"pattern 'test-\*'(.|\n)*- eval-0"):
        select(tmp_path, {**patterns, "test": "test-*"})
    with pytest.raises(DataError, match=f"the data: no _SUCCESS in {tmp_path}"):
        select(tmp_path, patterns, complete_when=MARKED)
    touch(tmp_path, "_SUCCESS")
    assert select(tmp_path, patterns, complete_when=MARKED).files


def test_names_that_a_glob_would_misread(tmp_path):
    base = tmp_path / "tr[a-z]ps *2024* d\u00e9j\u00e0 {SPAN}"
    touch(base, "span 1/train \u00e9t\u00e9 [1]", "span 1/eval ?")
    window = select(base, {"train": "span {SPAN}/train *", "eval": "*{SPAN}/eval [?]"})
    assert chosen(window) == [
        "train span 1/train \u00e9t\u00e9 [1]",
        "eval span 1/eval ?",
    ]
    assert all(Path(file.path).is_file() for file in window.files)


def test_an_invalid_date_is_skipped_and_named(tmp_path):
    touch(tmp_path, "20240228/a", "20240230/a", "20240230/b", "tmp/a")
    window = select(tmp_path, {None: "{YYYY}{MM}{DD}/*"})
    assert chosen(window) == ["None 20240228/a"]
    assert [(s.name, s.why) for s in window.skipped] == [
        ("span 2024-02-30", f"not a date: {tmp_path}/20240230")
    ]


def test_a_span_in_the_names_of_files(tmp_path):
    patterns: dict[str | None, str] = {"train": "{SPAN}-train-*", "eval": "{SPAN}-eval"}
    touch(tmp_path, "1-train-a", "1-train-b", "1-eval", "2-train-a")
    assert chosen(select(tmp_path, patterns)) == [
        "train 1-train-a",
        "train 1-train-b",
        "eval 1-eval",
    ]
    with pytest.raises(ConfigError, match="spans with directories"):
        select(tmp_path, patterns, complete_when=MARKED)


def test_one_span_with_two_names_is_refused(tmp_path):
    touch(tmp_path, "1/a", "01/a")
    with pytest.raises(
        DataError, match=r"two names denote the same span(.|\n)*/01\n.*/1\n"
    ):
        select(tmp_path, {None: "{SPAN}/*"})


def test_one_span_in_two_directories_is_one_span(tmp_path):
    touch(tmp_path, "east/1/a", "west/1/a", "west/1/_SUCCESS")
    patterns: dict[str | None, str] = {None: "*/{SPAN}/*"}
    assert chosen(select(tmp_path, patterns)) == ["None east/1/a", "None west/1/a"]
    with pytest.raises(DataError, match="no _SUCCESS in .*/east/1"):
        select(tmp_path, patterns, complete_when=MARKED)


def test_a_file_of_two_splits_is_refused(tmp_path):
    touch(tmp_path, "1/a", "1/eval-b")
    with pytest.raises(ConfigError, match="1/eval-b: train, eval"):
        select(tmp_path, {"train": "{SPAN}/*", "eval": "{SPAN}/eval-*"})


def test_splits_must_have_the_same_placeholders(tmp_path):
    with pytest.raises(ConfigError, match="different placeholders"):
        select(tmp_path, {"train": "{SPAN}/*", "eval": "eval/*"})


def test_a_pipe_and_a_broken_link_are_rejected(tmp_path):
    touch(tmp_path, "1/a")
    os.mkfifo(tmp_path / "1" / "_pipe")
    assert chosen(select(tmp_path, {None: "{SPAN}/*"})) == ["None 1/a"]
    os.symlink("nowhere", tmp_path / "1" / "b")
    with pytest.raises(UsageError, match="broken link(.|\n)*1/b(.|\n)*to nowhere"):
        select(tmp_path, {None: "{SPAN}/*"})
    os.mkfifo(tmp_path / "1" / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        select(tmp_path, {None: "{SPAN}/*"})


def test_the_fingerprint_is_of_places_splits_and_contents(tmp_path):
    def fingerprint(base: Path, patterns: dict[str | None, str], content: str) -> str:
        return select(base, patterns).fingerprint(lambda file: content)

    touch(tmp_path, "x/1/a", "y/1/a", "z/1/b")
    hashed: dict[str | None, str] = {None: "{SPAN}/*"}
    first = fingerprint(tmp_path / "x", hashed, "0")
    assert first.startswith("sha256:")
    assert fingerprint(tmp_path / "y", hashed, "0") == first
    assert fingerprint(tmp_path / "z", hashed, "0") != first
    assert fingerprint(tmp_path / "x", hashed, "1") != first
    assert fingerprint(tmp_path / "x", {"train": "{SPAN}/*"}, "0") != first


@pytest.mark.parametrize("patterns", [SPLITS, {None: "span-{SPAN}/part-*/*"}])
def test_a_window_never_contains_part_of_a_span(tmp_path, patterns):
    names = [f"{split}-{i:03d}" for i in range(40) for split in ("train", "eval")]
    if None in patterns:
        names = [f"part-{i % 7}/{name}" for i, name in enumerate(names)]
    touch(tmp_path, *(f"span-0/{name}" for name in [*names, "_SUCCESS"]))

    selected = Event()

    def write_spans() -> None:
        for number in range(1, 6):
            touch(tmp_path, *(f"span-{number}/{name}" for name in names))
            touch(tmp_path, f"span-{number}/_SUCCESS")
            # Else all may be there before the busy machine has looked twice.
            selected.clear()
            assert selected.wait(timeout=60)

    counts: dict[int, set[int]] = {}
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write_spans)
        while not writing.done():
            window = select(tmp_path, patterns, complete_when=MARKED)
            counts.setdefault(window.spans[0].number, set()).add(len(window.files))
            selected.set()
        writing.result()
    assert len(counts) > 1
    assert set().union(*counts.values()) == {len(names)}


def test_a_manifest_is_fingerprinted_but_not_ingested(tmp_path):
    def fingerprint(content: str) -> str:
        window = select(tmp_path, {"train": "{SPAN}/*"})
        assert [Path(file.path).name for file in window.files] == ["a"]
        return window.fingerprint(
            lambda file: content if file.path.endswith("manifest.json") else "0"
        )

    touch(tmp_path, "1/a")
    without = fingerprint("x")
    touch(tmp_path, "1/manifest.json")
    assert len({without, fingerprint("x"), fingerprint("y")}) == 3


def test_a_name_that_is_not_utf_8_is_refused_by_name(tmp_path):
    touch(tmp_path, "1/a")
    (tmp_path / "1" / os.fsdecode(b"caf\xe9")).touch()
    assert chosen(select(tmp_path, {None: "{SPAN}/a*"})) == ["None 1/a"]
    with pytest.raises(UsageError, match=r"not UTF-8(.|\n)*/1/caf\\xe9"):
        select(tmp_path, {None: "{SPAN}/*"})
