"""Finds the file of a config or profile by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sluice.errors import UsageError, did_you_mean
from sluice.project import current_project, own_root


def find_config(name_or_path: str, cwd: Path) -> Path:
    """Returns the file of a config, named as for ``load_config``.

    Raises:
      UsageError: there is none; it lists those that there are.
    """
    if os.sep in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        path = cwd / name_or_path
        if path.is_file():
            return _absolute(path)
        raise UsageError(
            "the config file does not exist",
            where=path,
            actual="a directory" if path.is_dir() else None,
            hint="pass the path of a YAML file, or the name of a config in configs/",
        )
    roots = dict.fromkeys((current_project(cwd), own_root()))
    folders = [root / "configs" for root in roots]
    try:
        return _named(name_or_path, folders, "config")
    except UsageError as error:
        if len(folders) > 1 or folders[0].parent in (cwd, *cwd.parents):
            raise
        raise UsageError(
            f"there is no config {name_or_path!r}, and this is not inside a project",
            where=cwd,
            expected="a directory that holds configs/, here or above",
            hint=f"{error.hint or 'cd to the project'}; without one, only the samples "
            "are there: " + ", ".join(_names(folders)),
        ) from error


def find_profile(name: str, root: Path) -> Path:
    """Returns the file of a profile: of the project at ``root``, or Sluice's own.

    Raises:
      UsageError: there is none; it lists those that there are.
    """
    folders = [
        top / "configs" / "profiles" for top in dict.fromkeys((root, own_root()))
    ]
    return _named(name, folders, "profile")


def _named(name: str, folders: Sequence[Path], what: str) -> Path:
    for folder in folders:
        path = folder / f"{name}.yaml"
        if name and path.is_file():
            return _absolute(path)
    known = _names(folders)
    raise UsageError(
        f"there is no {what} {name!r}",
        where=", ".join(str(folder) for folder in folders),
        expected=f"one of {', '.join(known)}" if known else f"a {what} there",
        hint=did_you_mean(name, known),
    )


def _names(folders: Sequence[Path]) -> list[str]:
    return sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})


def _absolute(path: Path) -> Path:
    """Resolves the folder but not the file: a symlink belongs to its own project."""
    return path.parent.resolve() / path.name
