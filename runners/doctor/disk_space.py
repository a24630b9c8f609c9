"""Free space of a file system that runs write to."""

from __future__ import annotations

import os
from pathlib import Path

from runners.doctor.check import Check, CheckState
from runners.doctor.existing_parent import existing_parent
from runners.doctor.in_gib import in_gib

# A run of the sample data leaves 4 MiB, Beam's temporary files of real data some GiB.
_SCARCE_BYTES = 2 * 2**30
_TOO_LITTLE_BYTES = 100 * 2**20
_TOO_FEW_FILES = 1000


def check_disk_space(check: str, folder: Path) -> Check:
    """Returns what is free for this user, in bytes and in files (inodes).

    Args:
      check: the row's name.
      folder: on the file system; it need not exist.
    """
    place = existing_parent(folder)
    stat = os.statvfs(place)
    free = stat.f_bavail * stat.f_frsize
    found = f"{in_gib(free)} free of {in_gib(stat.f_blocks * stat.f_frsize)}, {place}"
    # Some file systems make inodes as they need them, and report none.
    if stat.f_files and stat.f_favail < _TOO_FEW_FILES:
        found += f", room for {stat.f_favail} files"
        return Check(check, "problem", found, "delete files there")
    if free >= _SCARCE_BYTES:
        return Check(check, "ok", found)
    state: CheckState = "warning" if free >= _TOO_LITTLE_BYTES else "problem"
    return Check(check, state, found, _hint(check))


def _hint(check: str) -> str:
    if check == "disk_temp":
        return "delete files there, or set TMPDIR to a folder on another disk"
    return "sluice gc NAME, or another folder with --workspace DIR"
