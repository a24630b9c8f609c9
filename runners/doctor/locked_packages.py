"""Compares installed packages with the lock file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runners.doctor.check import Check
from sluice.errors import bounded

_HASHES = re.compile(r"\s+--hash=\S+")
_COMMENT = re.compile(r"(^|\s)#.*")


def check_locked_packages(root: Path) -> Check:
    """Compares the installed packages with the nearest of ``requirements/tfx-*.txt``.

    Packages that are not in the lock are ignored. Differences are a warning: the
    installed packages may work, but were not tested.
    """
    locks = sorted((root / "requirements").glob("tfx-*.txt"))
    if not locks:
        return Check(
            "lock",
            "warning",
            f"there is no {root / 'requirements'}/tfx-*.txt",
            "run Sluice from its checkout, where the locks are",
        )
    installed: dict[str, str] = {
        canonicalize_name(distribution.name): distribution.version
        for distribution in distributions()
        if distribution.name
    }
    try:
        pins = {lock: _pins(lock) for lock in locks}
    except (InvalidRequirement, OSError, UnicodeDecodeError) as error:
        return Check("lock", "problem", f"a lock is unreadable: {error}", "make lock")
    differences = {lock: _differences(pins[lock], installed) for lock in locks}
    nearest = min(locks, key=lambda lock: len(differences[lock]))
    name = nearest.relative_to(root)
    if not differences[nearest]:
        return Check("lock", "ok", f"{name}: all {len(pins[nearest])} as locked")
    return Check(
        "lock",
        "warning",
        f"{name}: {len(differences[nearest])} of {len(pins[nearest])} differ: "
        + "; ".join(bounded(differences[nearest])),
        "make setup",
    )


def _pins(lock: Path) -> list[Requirement]:
    """Returns the requirements of a lock for this Python and system."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (
        _HASHES.sub("", _COMMENT.sub("", line)).strip() for line in text.split("\n")
    )
    pins = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]


def _differences(pins: list[Requirement], installed: Mapping[str, str]) -> list[str]:
    lines = []
    for pin in pins:
        version = installed.get(canonicalize_name(pin.name))
        locked = str(pin.specifier).removeprefix("==")
        if version is None:
            lines.append(f"{pin.name} {locked} is not installed")
        elif not pin.specifier.contains(version, prereleases=True):
            lines.append(f"{pin.name} is {version}, locked is {locked}")
    return lines
