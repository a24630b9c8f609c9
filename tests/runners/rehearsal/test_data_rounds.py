"""Which files of the data have arrived by which round."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.window import Window
from runners.rehearsal.data_rounds import files_by_round, link_files

pytestmark = pytest.mark.unit


def _window(folder: Path, names: list[str], pattern: str) -> Window:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    now_s = time.time()
    return select_spans(str(folder), {"train": pattern}, 10**6, CompleteWhen(), now_s)


def test_newest_spans_arrive_last_with_their_markers(tmp_path: Path) -> None:
    names = [f"span-{n}/{file}" for n in (1, 2, 3) for file in ("train-0", "_DONE")]
    window = _window(tmp_path, [*names, "README"], "span-{SPAN}/train-*")
    first, second = files_by_round(window, 2)
    assert first == sorted(["README", *names[:4]])
    assert second == sorted(["README", *names])


def test_first_rounds_have_the_oldest_span(tmp_path: Path) -> None:
    names = ["day-1-train", "day-2-train"]
    window = _window(tmp_path, names, "day-{SPAN}-train")
    assert files_by_round(window, 3) == [names[:1], names[:1], names]


def test_data_without_spans_is_there_from_the_beginning(tmp_path: Path) -> None:
    window = _window(tmp_path, ["train-0", "train-1"], "train-*")
    assert files_by_round(window, 2) == [["train-0", "train-1"]] * 2


def test_linked_files_have_the_same_content(tmp_path: Path) -> None:
    base, target = tmp_path / "data", tmp_path / "round"
    _window(base, ["span-1/a", "span-2/a"], "span-{SPAN}/a")
    for names in (["span-1/a"], ["span-1/a", "span-2/a"]):
        link_files(base, names, target)
    assert (target / "span-2" / "a").read_text() == "span-2/a"
