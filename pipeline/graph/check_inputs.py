"""Finds the files of a run, before anything heavy is imported."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.span_pattern import SpanPattern
from components.tfrecord_gen.spans.window import Window
from pipeline.config.config import Config
from sluice.errors import UsageError
from sluice.splits import SERVING
from sluice.storage.file_pattern import FilePattern
from sluice.storage.uri import is_remote


def check_inputs(
    config: Config, *, hint: str | None = None, now_s: float | None = None
) -> Window:
    """Returns the files of the newest complete spans, or of all data without spans.

    Args:
      config: the pipeline's config.
      hint: what to try when there is no data at all.
      now_s: seconds since 1970; None for the clock's.

    Raises:
      UsageError: the directory is missing or unreadable, a pattern matches nothing, or
        something that is no readable file.
      DataError: no span is complete.
    """
    remote = is_remote(config.data.dir)
    directory = config.data_dir
    patterns = config.data.patterns
    plain = {
        split
        for split, pattern in patterns.items()
        if not SpanPattern.parse(pattern).placeholders
    }
    if not remote:
        name = f"{directory} (data.dir in {config.origin.file})"
        _check_directory(directory, name, hint)
        for split in plain:
            _check_pattern(directory, patterns[split], _key(config, split), hint)
    window = select_spans(
        config.data_uri,
        patterns,
        config.examples.window,
        complete_when(config),
        time.time() if now_s is None else now_s,
    )
    if not remote:
        for file in window.files:
            if file.split not in plain:
                where = f"{file.path} ({_key(config, file.split)})"
                _check_file(Path(file.path), patterns[file.split], where)
    return window


def serving_inputs(config: Config, *, now_s: float | None = None) -> Window | None:
    """Returns the files of what clients have sent; None where the config has none.

    Args:
      config: the pipeline's config.
      now_s: seconds since 1970; None for the clock's.

    Raises:
      UsageError, DataError: as ``check_inputs`` does.
    """
    if config.data.serving is None:
        return None
    return select_spans(
        config.data_uri,
        {SERVING: config.data.serving},
        config.examples.window,
        complete_when(config),
        time.time() if now_s is None else now_s,
    )


def complete_when(config: Config) -> CompleteWhen:
    """Returns when a span counts as complete."""
    given = config.examples.complete_when
    return CompleteWhen(given.marker, given.quiet_for_s)


def _key(config: Config, split: str | None) -> str:
    key = f"data.splits.{split}" if split else "data.files"
    return f"{key} in {config.origin.file}"


def _check_pattern(directory: Path, pattern: str, key: str, hint: str | None) -> None:
    """Raises if a pattern without spans matches nothing, or no file."""
    takes = FilePattern.parse(pattern).takes
    # A glob also finds hidden files and folders, and such as `_tmp`.
    found = sorted(directory.glob(pattern))
    matches = [p for p in found if takes(p.relative_to(directory).as_posix())]
    # `glob` finds a link that leads nowhere only by a wildcard.
    if not matches and (directory / pattern).is_symlink():
        matches = [directory / pattern]
    if not matches:
        names = sorted(path.name for path in directory.iterdir())
        raise UsageError(
            f"the pattern {pattern!r} matches no file",
            where=f"{directory} ({key})",
            actual="an empty directory" if not names else None,
            examples=names,
            hint=hint or "correct the pattern; the directory's files are above",
        )
    for path in matches:
        _check_file(path, pattern, f"{path} ({key})")


def _check_directory(directory: Path, where: str, hint: str | None) -> None:
    if not os.path.isdir(directory):
        raise UsageError(
            "the data directory is a file"
            if os.path.exists(directory)
            else "the data directory does not exist",
            where=where,
            hint=hint or "correct data.dir, or put the TFRecords there",
        )
    if not os.access(directory, os.R_OK | os.X_OK):
        raise UsageError(
            "the data directory cannot be read",
            where=where,
            hint=f"chmod u+rx {directory}",
        )


def _check_file(path: Path, pattern: str, where: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        mode = 0
    except OSError as error:
        raise UsageError(
            f"the pattern {pattern!r} matches a link that leads nowhere",
            where=where,
            actual=f"a link to {os.readlink(path)}"
            if path.is_symlink()
            else str(error),
            hint="make the link's target, or delete the link",
        ) from error
    if stat.S_ISDIR(mode):
        raise UsageError(
            f"the pattern {pattern!r} matches a directory",
            where=where,
            expected="TFRecord files only",
            hint=f"match the files in it: {path.name}/*",
        )
    if not os.access(path, os.R_OK):
        raise UsageError(
            f"the pattern {pattern!r} matches a file that cannot be read",
            where=where,
            actual="no permission to read it",
            hint=f"chmod u+r {path}",
        )
