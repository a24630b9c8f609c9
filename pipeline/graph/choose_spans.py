"""Chooses the spans and files of a run, before TFX is imported."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from components.tfrecord_gen.spans.select_spans import NoFilesError, select_spans
from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from sample_data import catalog
from sluice.errors import UsageError
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
