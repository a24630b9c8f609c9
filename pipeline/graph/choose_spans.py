"""Chooses the spans and files of a run, before TFX is imported."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime

from components.tfrecord_gen.input_files import SpanChoice, Window
from components.tfrecord_gen.select_spans import NoFilesError, select_spans
from pipeline.config.config import Config
from pipeline.config.data import REQUESTS
from pipeline.graph.arguments import source_of
from sample_data import catalog
from serving.model_store import store_at
from sluice.errors import UsageError
from sluice.splits import SERVING
from sluice.storage.storage import is_remote
from sluice.workspace import locate


def choose_spans(config: Config) -> SpanChoice:
    """Returns the files of the newest complete spans, or of all data without spans.

    Raises:
      UsageError: the directory is missing or unreadable, or a pattern matches no file.
      DataError: no span is complete.
    """
    data = choose_data(config)
    if config.data.serving is None:
        return SpanChoice(data)
    return SpanChoice(data, _choose_requests(config))


def _choose_requests(config: Config) -> Window:
    """Returns the files of serving requests: of recorded ones those since the push."""
    source = source_of(config, SERVING)
    if config.data.serving != REQUESTS:
        return select_spans(source, time.time())
    served = config.serving_dir or locate(config.root, config.name).serving
    newest = store_at(served).newest()
    none = Window(source.base, source.patterns, (), (), ())
    if newest is None or not os.path.isdir(source.base):
        return none
    try:
        found = select_spans(source, time.time())
    except NoFilesError:
        return none
    since = datetime.fromisoformat(newest.published_at or "1970-01-01T00:00+00:00")
    # A server may take five minutes to write a request: a file may begin before.
    recent = tuple(x for x in found.files if x.modified_s >= since.timestamp())
    # Days without requests are nothing to report.
    return replace(found, files=recent, skipped=())


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
