"""The stored choice of a run's spans, and changes of the files since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.span_choice import (
    SPANS_FILE,
    SPANS_PATH,
    SpanChoice,
    check_unchanged,
    chosen_window,
)
from components.tfrecord_gen.spans.window import Window
from sluice.errors import DataError, WorkspaceError

pytestmark = pytest.mark.unit

PATTERNS: dict[str | None, str] = {None: "{YYYY}{MM}{DD}/part-*"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("20240102/part-0", "20240102/manifest.json", "20240103/part-0"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "data"


def choose(data: Path, window: int = 2) -> Window:
    return select_spans(str(data), PATTERNS, window, CompleteWhen(), 0.0)


@pytest.fixture
def stored(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpanChoice:
    choice = SpanChoice(choose(data))
    monkeypatch.setenv(SPANS_PATH, str(choice.save(tmp_path)))
    return choice


def test_a_choice_is_stored_and_read(data, tmp_path):
    choice = SpanChoice(choose(data), serving=choose(data, window=1))
    assert SpanChoice.load(tmp_path) is None
    choice.save(tmp_path)
    assert SpanChoice.load(tmp_path) == choice
    (tmp_path / SPANS_FILE).write_text("{")
    with pytest.raises(WorkspaceError, match=SPANS_FILE):
        SpanChoice.load(tmp_path)


def test_a_later_delivery_is_not_taken(data, stored):
    late = data / "20240104" / "part-0"
    late.parent.mkdir()
    late.write_text("late")
    (data / "20240103" / "part-1").write_text("late")

    window = chosen_window(f"{data}/", PATTERNS)

    assert window == stored.data
    check_unchanged(stored.data)
    assert len(choose(data).files) == 3


def test_a_node_with_other_patterns_chooses_itself(data, stored):
    assert chosen_window(str(data), {"serving": "{YYYY}{MM}{DD}/part-*"}) is None
    assert chosen_window(str(data / "20240102"), PATTERNS) is None


def test_without_a_run_nothing_is_chosen(data, monkeypatch):
    monkeypatch.delenv(SPANS_PATH, raising=False)
    assert chosen_window(str(data), PATTERNS) is None


def _rewrite(path: Path) -> None:
    text = path.read_text()
    path.write_text(text)
    os.utime(path, (1, 1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Path.unlink, "No such file"),
        (lambda path: path.write_text("more than before"), " bytes, now 16"),
        (_rewrite, "rewritten"),
    ],
)
@pytest.mark.parametrize("name", ["20240102/part-0", "20240102/manifest.json"])
def test_a_chosen_file_that_changed_is_named(data, stored, change, said, name):
    change(data / name)
    with pytest.raises(DataError, match="changed since the run chose") as caught:
        check_unchanged(stored.data)
    (line,) = caught.value.examples
    assert line.startswith(f"{data / name}: ")
    assert said in line


def test_a_resumed_run_takes_new_times_of_the_same_content(data, stored):
    os.utime(data / "20240102" / "part-0", (1, 1))
    again = stored.restat()
    check_unchanged(again.data)
    assert again.data.spans == stored.data.spans


def test_a_resumed_run_fails_if_a_file_is_gone(data, stored):
    (data / "20240102" / "part-0").unlink()
    again = stored.restat()
    assert again.data.files == stored.data.files
    with pytest.raises(DataError, match="changed since the run chose"):
        check_unchanged(again.data)
