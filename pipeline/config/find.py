"""Finds configs and profiles; imports no pydantic, for the unchanged re-run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sluice.errors import UsageError, did_you_mean
from sluice.project import current_project, own_root


def find_config(name_or_path: str, cwd: Path) -> Path:
    """Returns the file of a config, named as for ``load_config``.

    Raises:
      UsageError: there is none; it lists those that there are.
    """
    if os.sep not in name_or_path and not name_or_path.endswith((".yaml", ".yml")):
        roots = (current_project(cwd), own_root())
        return find_file(name_or_path, roots, "configs", "config")
    path = cwd / name_or_path
    if os.path.isfile(path):
        return _absolute(path)
    raise UsageError(f"there is no config file {name_or_path!r}", where=path)


def find_file(name: str, roots: Iterable[Path], folder: str, kind: str) -> Path:
    """Returns the file of a name in a folder of the first root that has it."""
    files: dict[str, Path] = {}
    for root in roots:
        for path in sorted((root / folder).glob("*.yaml")):
            files.setdefault(path.stem, path)
    if name in files:
        return _absolute(files[name])
    raise UsageError(
        f"there is no {kind} {name!r}",
        where=", ".join(str(root / folder) for root in dict.fromkeys(roots)),
        expected=f"one of {', '.join(sorted(files))}",
        hint=did_you_mean(name, files),
    )


def _absolute(path: Path) -> Path:
    """Resolves the folder but not the file: a symlink belongs to its own project."""
    return path.parent.resolve() / path.name
