"""Selection of the spans that an earlier selection has found."""

from __future__ import annotations

import pytest

from components.tfrecord_gen.spans.window import Span, read_spans
from sluice.errors import DataError
from tests.components.tfrecord_gen.spans.selection import select, touch

pytestmark = pytest.mark.unit


def test_a_pinned_window_ignores_what_came_later(tmp_path):
    for number in (1, 2, 3):
        touch(tmp_path, f"span-{number}/train-0", f"span-{number}/eval-0")
    first = select(tmp_path, window=2)
    assert first.spans_json() == "[[2, null], [3, null]]"
    touch(tmp_path, "span-4/train-0", "span-4/eval-0", "span-5/train-0")
    again = select(tmp_path, window=2, only=read_spans(first.spans_json()))
    assert again.files == first.files
    assert again.spans == first.spans
    assert [(s.name, s.why) for s in again.skipped] == [
        ("span 5", "no file of split eval"),
        ("span 4", "complete only since then"),
    ]
    (tmp_path / "span-2").rename(tmp_path / "gone")
    with pytest.raises(DataError, match="no longer exist(.|\n)*- span 2"):
        select(tmp_path, only=first.spans)


def test_a_pinned_version_hides_older_ones_and_names_newer_ones(tmp_path):
    patterns: dict[str | None, str] = {None: "{SPAN}/v{VERSION}/*"}
    touch(tmp_path, "1/v1/a", "2/v1/a", "2/v2/a")
    first = select(tmp_path, patterns, window=2)
    assert first.spans == (Span(1, 1), Span(2, 2))
    assert not first.skipped
    touch(tmp_path, "2/v3/a", "0/v9/a", "3/v0/a")
    again = select(tmp_path, patterns, window=2, only=first.spans)
    assert again.files == first.files
    assert [s.name for s in again.skipped] == ["span 3, version 0", "span 2, version 3"]
    (tmp_path / "1/v1/a").unlink()
    with pytest.raises(DataError, match="no longer exist(.|\n)*- span 1, version 1"):
        select(tmp_path, patterns, only=first.spans)


def test_pinning_without_placeholders_pins_nothing(tmp_path):
    touch(tmp_path, "a")
    window = select(tmp_path, {None: "*"})
    assert window.spans_json() == "[]"
    assert select(tmp_path, {None: "*"}, only=read_spans("[]")) == window
    assert read_spans("") is None
