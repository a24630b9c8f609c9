"""Chooses the spans and files of a run, before TFX is imported."""

from __future__ import annotations

import os
import time

from components.tfrecord_gen.input_files import SpanChoice, Window
from components.tfrecord_gen.select_spans import NoFilesError, select_spans
from pipeline.config.config import Config
from pipeline.graph.arguments import source_of
from sample_data import catalog
from sluice.errors import UsageError
from sluice.splits import SERVING
from sluice.storage.storage import is_remote


def choose_spans(config: Config) -> SpanChoice:
    """Returns the files of the newest complete spans, or of all data without spans.

    Raises:
      UsageError: the directory is missing or unreadable, or a pattern matches no file.
      DataError: no span is complete.
    """
    data = choose_data(config)
    if config.data.serving is None:
        return SpanChoice(data)
    return SpanChoice(data, select_spans(source_of(config, SERVING), time.time()))


def choose_data(config: Config) -> Window:
    """Returns the files to train and evaluate on; raises as ``choose_spans``."""
    hint = _data_hint(config)
    if not is_remote(config.data.dir) and not os.path.isdir(config.data_dir):
        raise UsageError(
            "the data directory does not exist, or is a file",
            where=f"{config.data_dir} (data.dir in {config.origin.file})",
            hint=hint or "correct data.dir, or copy the TFRecords there",
        )
    try:
        return select_spans(source_of(config), time.time())
    except NoFilesError as error:
        error.where = f"{error.where} (data in {config.origin.file})"
        error.hint = hint or error.hint
        raise


def _data_hint(config: Config) -> str | None:
    """Returns the command that makes the data if it is a sample data set."""
    name = config.data_dir.name
    is_sample = config.data_dir == config.root / "data" / name
    is_sample = is_sample and name in catalog.names()
    return f"sluice data make {name}" if is_sample else None
