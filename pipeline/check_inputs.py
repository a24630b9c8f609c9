"""Looks for the files that the splits name, before anything heavy is imported."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pipeline.config import Config
from sluice.errors import UsageError


def check_inputs(config: Config, *, hint: str | None = None) -> dict[str, list[Path]]:
    """Returns the files of each split.

    Args:
      config: the pipeline's config.
      hint: what to try when there is no data at all.

    Raises:
      UsageError: the directory is missing or unreadable, a pattern matches nothing, or
        something that is no readable file.
    """
    directory = config.data_dir
    _check_directory(directory, f"{directory} (data.dir in {config.origin.file})", hint)
    files: dict[str, list[Path]] = {}
    for split, pattern in config.data.splits:
        if pattern is None:
            continue
        key = f"data.splits.{split} in {config.origin.file}"
        matches = sorted(directory.glob(pattern))
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
        files[split] = matches
    return files


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
