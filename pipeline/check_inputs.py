"""Looks for the files that the splits name, before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import Config
from sluice.errors import UsageError


def check_inputs(config: Config, *, hint: str | None = None) -> dict[str, list[Path]]:
    """Returns the files of each split.

    Args:
      config: the pipeline's config.
      hint: what to try when there is no data at all.

    Raises:
      UsageError: the directory is missing, a pattern matches nothing, or a directory.
    """
    directory = config.data_dir
    if not directory.is_dir():
        raise UsageError(
            "the data directory does not exist"
            if not directory.exists()
            else "the data directory is a file",
            where=f"{directory} (data.dir in {config.origin.file})",
            hint=hint or "correct data.dir, or put the TFRecords there",
        )
    files: dict[str, list[Path]] = {}
    for split, pattern in config.data.splits:
        if pattern is None:
            continue
        key = f"data.splits.{split} in {config.origin.file}"
        matches = sorted(directory.glob(pattern))
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
            if path.is_dir():
                raise UsageError(
                    f"the pattern {pattern!r} matches a directory",
                    where=f"{path} ({key})",
                    expected="TFRecord files only",
                    hint=f"match the files in it: {path.name}/*",
                )
        files[split] = matches
    return files
