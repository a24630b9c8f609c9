"""The age of the newest span, and the error if it is too old."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.staleness import check_staleness
from components.tfrecord_gen.spans.window import Window
from sluice.errors import DataError

pytestmark = pytest.mark.unit

NOON_S = datetime(2024, 1, 3, 12, tzinfo=timezone.utc).timestamp()
HOUR_S = 3600.0


def window_of(base: Path, pattern: str, ages_h: dict[str, float]) -> Window:
    for name, age_h in ages_h.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (NOON_S - age_h * HOUR_S,) * 2)
    marked = CompleteWhen(marker="_SUCCESS") if "_SUCCESS" in str(ages_h) else None
    when = marked or CompleteWhen()
    return select_spans(str(base), {None: pattern}, 9, when, NOON_S)


def test_a_day_is_as_old_as_its_end_whenever_its_files_were_written(tmp_path):
    window = window_of(
        tmp_path, "{YYYY}{MM}{DD}/*", {"20240101/a": 0, "20240102/a": 900}
    )
    check_staleness(window, 12, NOON_S)
    with pytest.raises(DataError, match="newest span .* too old") as caught:
        check_staleness(window, 12, NOON_S + 1)
    assert "at most 12 h (validate.stale_after_h)" in str(caught.value)
    assert "span 2024-01-02 is 12 h old: its day ended at 2024-01-03 00:00 UTC" in str(
        caught.value
    )
    check_staleness(window, None, NOON_S * 2)


def test_the_current_day_is_not_old(tmp_path):
    window = window_of(tmp_path, "{YYYY}{MM}{DD}/*", {"20240103/a": 0})
    check_staleness(window, 0.001, NOON_S)


def test_a_numbered_span_is_as_old_as_its_newest_file(tmp_path):
    ages_h = {"1/a": 1.0, "2/a": 200.0, "2/b": 100.0}
    window = window_of(tmp_path, "{SPAN}/*", ages_h)
    check_staleness(window, 100, NOON_S)
    with pytest.raises(DataError, match="span 2 is 4 days old: its newest file was"):
        check_staleness(window, 99, NOON_S)


def test_data_without_spans_has_an_age(tmp_path):
    window = window_of(tmp_path, "*", {"a": 50, "b": 3})
    check_staleness(window, 3, NOON_S)
    with pytest.raises(DataError, match="newest file of the data is too old"):
        check_staleness(window, 2.9, NOON_S)


def test_spans_that_were_not_complete_are_named(tmp_path):
    ages_h = {"1/a": 9.0, "1/_SUCCESS": 9.0, "2/a": 1.0}
    window = window_of(tmp_path, "{SPAN}/*", ages_h)
    with pytest.raises(DataError, match="span 2 was not taken: no _SUCCESS in"):
        check_staleness(window, 5, NOON_S)
