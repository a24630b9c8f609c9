"""Chooses the spans and files of a run, before TFX is imported.

Also checks that the newest span is not too old to train on. A node cannot check this:
its result is cached, while the age of a span depends on the clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from components.tfrecord_gen.spans.select_spans import NoFilesError, select_spans
from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from sample_data import catalog
from sluice.errors import DataError, UsageError
from sluice.splits import SERVING
from sluice.storage.storage import is_remote


def choose_spans(config: Config, *, now_s: float | None = None) -> SpanChoice:
    """Returns the files of the newest complete spans, or of all data without spans.

    Args:
      config: the pipeline's config.
      now_s: seconds since 1970; None for the current time.

    Raises:
      UsageError: the directory is missing or unreadable, or a pattern matches no file
        or an unreadable one.
      DataError: no span is complete.
    """
    now_s = time.time() if now_s is None else now_s
    data = choose_data(config, now_s=now_s)
    pattern = config.data.serving
    if pattern is None:
        return SpanChoice(data)
    return SpanChoice(data, _select(config, {SERVING: pattern}, now_s))


def choose_data(config: Config, *, now_s: float | None = None) -> Window:
    """Returns the files to train and evaluate on; arguments as ``choose_spans``."""
    hint = _data_hint(config)
    if not is_remote(config.data.dir):
        name = f"{config.data_dir} (data.dir in {config.origin.file})"
        _check_directory(config.data_dir, name, hint)
    try:
        now_s = time.time() if now_s is None else now_s
        return _select(config, config.data.patterns, now_s)
    except NoFilesError as error:
        error.hint = hint or error.hint
        raise


def _data_hint(config: Config) -> str | None:
    """Returns the command that makes the data if it is a sample data set."""
    for name in catalog.names():
        if config.data_dir == config.root / "data" / name:
            data_set = catalog.get(name)
            own_files = data_set.read is not None and not data_set.downloads
            return f"sluice data make {name}" + (" --from DIR" if own_files else "")
    return None


def _select(config: Config, patterns: Mapping[str | None, str], now_s: float) -> Window:
    return select_spans(
        config.data_uri,
        patterns,
        config.examples.window,
        config.examples.complete_when,
        now_s,
        keys={split: _key(config, split) for split in patterns},
    )


def _key(config: Config, split: str | None) -> str:
    key = f"data.splits.{split}" if split else "data.files"
    key = "data.serving" if split == SERVING else key
    return f"{key} in {config.origin.file}"


def _check_directory(directory: Path, where: str, hint: str | None) -> None:
    if not os.path.isdir(directory):
        raise UsageError(
            "the data directory is a file"
            if os.path.exists(directory)
            else "the data directory does not exist",
            where=where,
            hint=hint or "correct data.dir, or copy the TFRecords there",
        )
    if not os.access(directory, os.R_OK | os.X_OK):
        raise UsageError(
            "the data directory cannot be read",
            where=where,
            hint=f"chmod u+rx {directory}",
        )


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
