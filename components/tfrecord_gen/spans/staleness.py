"""Checks that the newest span is not too old to train on.

Whoever chooses the spans checks it: an ingestion may be cached, while the age of a span
depends on the clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from components.tfrecord_gen.spans.window import Window
from sluice.errors import DataError


def check_staleness(window: Window, stale_after_h: float | None, now_s: float) -> None:
    """Raises if the newest span is older than the limit.

    The age of a span with a date counts from the end of that day, in UTC; that of any
    other, and of data without spans, from the modification of its newest file.

    Args:
      window: the selected spans.
      stale_after_h: hours; None for no limit.
      now_s: seconds since 1970.

    Raises:
      DataError: the newest span is older.
    """
    if stale_after_h is None:
        return
    made_s, of_what = _made_s(window)
    age_h = (now_s - made_s) / 3600
    if age_h <= stale_after_h:
        return
    made = datetime.fromtimestamp(made_s, timezone.utc)
    raise DataError(
        "the newest span of the data is too old"
        if window.newest
        else "the newest file of the data is too old",
        where=window.base,
        expected=f"at most {stale_after_h:g} h (validate.stale_after_h)",
        actual=f"{window.newest or 'it'} is {_length(age_h)} old: "
        f"{of_what} {made:%Y-%m-%d %H:%M} UTC",
        examples=window.skipped_lines,
        hint="check why no newer span has arrived, or raise the limit",
    )


def _made_s(window: Window) -> tuple[float, str]:
    newest = window.newest
    if newest and newest.date:
        midnight = datetime.min.time()
        end = datetime.combine(newest.date + timedelta(days=1), midnight, timezone.utc)
        return end.timestamp(), "its day ended at"
    modified_s = max(
        file.modified_s or 0.0
        for file in window.files
        if newest is None or file.span == newest.number
    )
    return modified_s, "its newest file was written at"


def _length(hours: float) -> str:
    return f"{hours:.0f} h" if hours < 96 else f"{hours / 24:.0f} days"
