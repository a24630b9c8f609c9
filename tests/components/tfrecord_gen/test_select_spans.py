"""Directory listings -> the window of spans that is ingested, or why there is none."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from threading import Event

import pytest

from components.tfrecord_gen.input_files import (
    SpanChoice,
    check_staleness,
    fingerprint,
)
from components.tfrecord_gen.select_spans import (
    NoFilesError,
    SpanPattern,
    select_spans,
    window_of,
)
from components.tfrecord_gen.settings import CompleteWhen, Ingestion
from sluice.errors import ConfigError, DataError

pytestmark = pytest.mark.unit

SPLITS = {"train": "span-{SPAN}/train-*", "eval": "span-{SPAN}/eval-*"}
MARKED = CompleteWhen(marker="_SUCCESS")
DAY = "{YYYY}{MM}{DD}"


def touch(base, *names, age_s=0.0, now_s=None):
    for name in names:
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, ((now_s or time.time()) - age_s,) * 2)


def settings_of(base, patterns=None, window=1, complete_when=None):
    if isinstance(patterns, str):
        patterns = {"train": patterns}
    return Ingestion(
        base=str(base),
        patterns=patterns or SPLITS,
        window=window,
        complete_when=complete_when or CompleteWhen(),
    )


def select(base, *settings, now_s=None, **more):
    now_s = time.time() if now_s is None else now_s
    return select_spans(settings_of(base, *settings, **more), now_s)


def chosen(window):
    start = len(window.base) + 1
    return [f"{file.split} {file.path[start:]}" for file in window.files]


@pytest.mark.parametrize(
    ("names", "patterns", "window", "files", "skipped"),
    [
        pytest.param(
            "span-9/train-0 span-9/eval-0 "
            "span-10/train-1 span-10/train-0 span-10/eval-0",
            SPLITS,
            1,
            "train span-10/train-0, train span-10/train-1, eval span-10/eval-0",
            "",
            id="the newest is by number, not by name",
        ),
        pytest.param(
            "1-train-a 1-train-b 1-eval 2-train-a",
            {"train": "{SPAN}-train-*", "eval": "{SPAN}-eval"},
            1,
            "train 1-train-a, train 1-train-b, eval 1-eval",
            "span 2 was not taken: no file matches {SPAN}-eval",
            id="spans in the names of files",
        ),
        pytest.param(
            "9223372036854775807/a 1764346000000000000/a 9223372036854775808/a",
            "{SPAN}/*",
            2,
            "train 1764346000000000000/a, train 9223372036854775807/a",
            "BASE/9223372036854775808 was not taken: its number does not fit into "
            "64 bits",
            id="any int64 is a span",
        ),
        pytest.param(
            "2024-01-05/a 2024-01-06/a 2024-01-07/a 2062-01-15/a 9999-12-31/a "
            "2023-11-31/a 0000-00-00/a",
            "{YYYY}-{MM}-{DD}/*",
            1,
            "train 2024-01-06/a",
            "BASE/0000-00-00 was not taken: not a date\n"
            "BASE/2023-11-31 was not taken: not a date\n"
            "BASE/2024-01-07 was not taken: a day after 2024-01-06, tomorrow in UTC\n"
            "BASE/2062-01-15 was not taken: a day after 2024-01-06, tomorrow in UTC\n"
            "BASE/9999-12-31 was not taken: a day after 2024-01-06, tomorrow in UTC",
            id="a day after tomorrow is none",
        ),
        pytest.param(
            "20240101/eval 20231225/train 20231225/eval 20240102/train 20240102/eval",
            {"train": f"{DAY}/train", "eval": f"{DAY}/eval"},
            2,
            "train 20231225/train, eval 20231225/eval, "
            "train 20240102/train, eval 20240102/eval",
            "span 2024-01-01 was not taken: no file matches {YYYY}{MM}{DD}/train\n"
            "there is no span of 2023-12-26, 2023-12-27, 2023-12-28, 2023-12-29, "
            "2023-12-30, and 1 more",
            id="missing days are named",
        ),
        pytest.param(
            "train-0 eval-0 b/train-1 manifest.json .train-2 _train-3 .d/train-4",
            {"train": "*train-*", "eval": "eval-*"},
            1,
            "train train-0, eval eval-0",
            "",
            id="without spans",
        ),
    ],
)
def test_what_is_selected(tmp_path, names, patterns, window, files, skipped):
    base = tmp_path / "tr[a-z]ps *2024* d\u00e9j\u00e0 {SPAN}"
    touch(base, *names.split())
    evening_s = datetime(2024, 1, 5, 23, 59, tzinfo=timezone.utc).timestamp()
    found = select(base, patterns, window, now_s=evening_s)
    assert ", ".join(chosen(found)) == files
    assert "\n".join(found.skipped) == skipped.replace("BASE", str(base))


@pytest.mark.parametrize(
    ("names", "pattern", "says"),
    [
        ("9/a 010/a 10/a", "{SPAN}/*", r"span 10 is .* twice(.|\n)*/010\n.*/10\n"),
        ("1/v01/a 1/v1/a", "{SPAN}/v{VERSION}/*", r"version 1 is(.|\n)*/v01\n.*/v1\n"),
    ],
)
def test_one_number_in_two_spellings_is_refused(tmp_path, names, pattern, says):
    touch(tmp_path, *names.split())
    with pytest.raises(DataError, match=says):
        select(tmp_path, pattern)


def test_the_newest_complete_version_is_taken(tmp_path):
    touch(tmp_path, "20240102/v9/b", "20240102/v10/c", "20240102/v11/d")
    touch(tmp_path, "20240102/v10/_SUCCESS", "20240102/v9/_SUCCESS")
    window = select(tmp_path, f"{DAY}/v{{VERSION}}/*", complete_when=MARKED)
    assert chosen(window) == ["train 20240102/v10/c"]
    assert list(map(str, window.spans)) == ["span 2024-01-02, version 10"]
    (file,) = window.files
    assert (file.span, file.version) == (19_724, 10)
    assert window.skipped == (
        "span 2024-01-02, version 11 was not taken: "
        f"no _SUCCESS in {tmp_path}/20240102/v11",
    )


def test_a_marker_is_never_a_data_file(tmp_path):
    touch(tmp_path, "1/a", "1/DONE", "2/b")
    when = CompleteWhen(marker="DONE")
    assert chosen(select(tmp_path, "{SPAN}/*", complete_when=when)) == ["train 1/a"]


def test_quiet_for_s_counts_from_the_last_changed_file(tmp_path):
    quiet = CompleteWhen(quiet_for_s=600)
    touch(tmp_path, "span-1/train-0", "span-1/eval-0", age_s=9_000)
    now_s = time.time()
    with pytest.raises(DataError, match=r"span 1 .*/span-1/\S+ was changed \d s ago"):
        # `utime` has set the time of modification only: the files have just arrived.
        select(tmp_path, complete_when=quiet, now_s=now_s)
    assert select(tmp_path, complete_when=quiet, now_s=now_s + 610).files


@pytest.mark.parametrize(
    ("names", "patterns", "error", "says"),
    [
        ("1/a", "{SPAN}/train-*", NoFilesError, r"pattern '\{SPAN\}/train-\*'"),
        ("eval-0", {"train": "train-*", "eval": "eval-*"}, NoFilesError, "- eval-0"),
        ("1/a", "{SPAN}/*", DataError, "no span .* complete(.|\n)*no _SUCCESS in .*/1"),
        ("a", "*", DataError, "the data was not taken: no _SUCCESS in"),
    ],
)
def test_why_nothing_is_selected(tmp_path, names, patterns, error, says):
    touch(tmp_path, *names.split())
    with pytest.raises(error, match=says):
        select(tmp_path, patterns, complete_when=MARKED)


def test_a_window_never_contains_part_of_a_span(tmp_path):
    names = [f"{split}-{i:03d}" for i in range(40) for split in ("train", "eval")]
    touch(tmp_path, *(f"span-0/{name}" for name in [*names, "_SUCCESS"]))
    selected = Event()

    def write_spans():
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
            window = select(tmp_path, complete_when=MARKED)
            counts.setdefault(window.spans[0].number, set()).add(len(window.files))
            selected.set()
        writing.result()
    assert len(counts) > 1
    assert set().union(*counts.values()) == {len(names)}


def test_the_fingerprint_is_of_places_splits_and_contents(tmp_path):
    def found(base, patterns="{SPAN}/*", content="0"):
        contents = select(tmp_path / base, patterns).contents(lambda path: content)
        return fingerprint(contents)

    touch(tmp_path, "x/1/a", "y/1/a", "z/1/b")
    first = found("x")
    assert first.startswith("sha256:")
    assert found("y") == first
    touch(tmp_path, "y/1/manifest.json")
    others = {found("z"), found("x", content="1"), found("y")}
    others.add(found("x", {"eval": "{SPAN}/*"}))
    assert len(others - {first}) == 4


@pytest.mark.parametrize(
    ("pattern", "ages_h", "limit_h", "says"),
    [
        (f"{DAY}/*", {"20240101/a": 0, "20240102/a": 900}, 12, "-01-02 is .*, 12 h"),
        (f"{DAY}/*", {"20240103/a": 0}, -12, "is of 2024-01-04 00:00 UTC"),
        ("{SPAN}/*", {"1/a": 1.0, "2/a": 200.0, "2/b": 100.0}, 100, "2 is .*, 100 h"),
        ("*", {"a": 50, "b": 3}, 3, "its newest file .*, 3 h ago"),
    ],
)
def test_data_that_is_too_old(tmp_path, pattern, ages_h, limit_h, says):
    noon_s = datetime(2024, 1, 3, 12, tzinfo=timezone.utc).timestamp()
    for name, age_h in ages_h.items():
        touch(tmp_path, name, age_s=age_h * 3600, now_s=noon_s)
    window = select(tmp_path, pattern, window=9)
    check_staleness(window, limit_h, noon_s)
    check_staleness(window, None, noon_s * 2)
    with pytest.raises(DataError, match=f"too old: .*{says}"):
        check_staleness(window, limit_h, noon_s + 1)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A choice that is stored for the nodes of a run."""
    for name in ("20240102/part-0", "20240102/manifest.json", "20240103/part-0"):
        touch(tmp_path / "data", name)
        (tmp_path / "data" / name).write_text(name)
    choice = SpanChoice(select(tmp_path / "data", f"{DAY}/part-*", window=2))
    (tmp_path / "spans.json").write_bytes(choice.to_json())
    monkeypatch.setenv("SLUICE_SPANS", str(tmp_path / "spans.json"))
    return choice.data


def window_for(base, pattern=f"{DAY}/part-*", **properties):
    settings = settings_of(base, pattern, window=2).model_dump_json()
    return window_of({"settings": settings, **properties})


def test_a_node_takes_the_files_chosen_for_its_run(tmp_path, stored, monkeypatch):
    data = tmp_path / "data"
    touch(data, "20240104/part-0", "20240103/part-1")
    assert window_for(data) == stored
    assert window_for(data, spans=str(tmp_path / "spans.json")) == stored
    # A node with other patterns, or without a choice, chooses itself.
    assert [f.span for f in window_for(data, f"{DAY}/part-0").files] == [19_725, 19_726]
    monkeypatch.delenv("SLUICE_SPANS")
    assert len(window_for(data).files) == 3


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("20240102/part-0", "unlink"),
        ("20240102/part-0", "grow"),
        ("20240102/manifest.json", "rewrite"),
    ],
)
def test_a_chosen_file_that_changed_is_named(tmp_path, stored, name, change):
    path = tmp_path / "data" / name
    if change == "unlink":
        path.unlink()
    else:
        path.write_text("more than before" if change == "grow" else name)
        os.utime(path, (1, 1))
    with pytest.raises(DataError, match="changed since the run chose") as caught:
        window_for(tmp_path / "data")
    assert list(caught.value.examples) == [str(path)]


@pytest.mark.parametrize(
    ("pattern", "name", "digits"),
    [
        ("span-{SPAN:2}", "span-007", None),
        ("{SPAN:2}{VERSION}", "12345", {"SPAN": "12", "VERSION": "345"}),
        ("{SPAN}{VERSION:2}", "12345", {"SPAN": "123", "VERSION": "45"}),
        (DAY, "20240131", {"YYYY": "2024", "MM": "01", "DD": "31"}),
        ("a.b?", "axb1", None),
        ("part-[0-9]", "part-3", {}),
    ],
)
def test_a_segment_matches(pattern, name, digits):
    assert SpanPattern.parse(pattern).segments[-1].match(name) == digits


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{SPAN}/{SPAN}/x", "each once"),
        ("{YYYY}/{MM}/x", "{YYYY}, {MM} and {DD}"),
        ("{HH}/x", "'{HH}' is invalid"),
        ("{SPAN}{VERSION}/x", "the number of digits, as in {SPAN:2}"),
        ("{SPAN}0?{VERSION}", "or with other text between"),
        ("*{SPAN}", "as in {SPAN:2}"),
        ("**/train-*", r"\* for the names in one folder"),
        ("span-{SPAN}/", "a path of files"),
    ],
)
def test_an_invalid_pattern_is_rejected(pattern, expected):
    with pytest.raises(ConfigError, match=expected):
        SpanPattern.parse(pattern)
