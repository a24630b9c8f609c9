"""Where a path that is not there yet would be made."""

from __future__ import annotations

from pathlib import Path


def existing_parent(path: Path) -> Path:
    """Returns the path itself, or else the nearest above it that exists."""
    path = Path(path).absolute()
    return next(known for known in (path, *path.parents) if known.exists())
