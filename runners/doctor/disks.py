"""Checks of the disks: the workspace can be written, locks hold, there is space."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from runners.doctor.check import Check, CheckState, in_gib
from sluice.storage import atomic


def existing_parent(path: Path) -> Path:
    """Returns the path or the nearest parent that exists."""
    path = Path(path).absolute()
    return next(known for known in (path, *path.parents) if known.exists())


def check_workspace_folder(folder: Path) -> Check:
    """Checks that the folder of workspaces, which need not exist, can be written.

    Writes a file and removes it.
    """
    place = existing_parent(folder)
    hint = "choose another folder with --workspace DIR or SLUICE_WORKSPACE"
    if not place.is_dir():
        return Check("workspace", "problem", f"{place} is not a directory", hint)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".sluice-doctor-") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        found = f"{place} cannot be written: {error.strerror}"
        return Check("workspace", "problem", found, hint)
    made = "" if place == folder.absolute() else "; the first run makes it"
    return Check("workspace", "ok", f"{folder}{made}")


_REFUSED = 3
_TRY_TO_LOCK = f"""
import fcntl, sys
try:
    fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit({_REFUSED})
"""


def check_file_locks(folder: Path) -> Check:
    """Checks that a file locked here cannot be locked by another process.

    If ``folder`` does not exist, the nearest parent is used.
    """
    place = existing_parent(folder)
    hint = "keep the workspace on a local disk: --workspace DIR or SLUICE_WORKSPACE"
    try:
        with (
            tempfile.NamedTemporaryFile(dir=place, prefix=".sluice-doctor-") as file,
            atomic.lock(file.name, wait=False),
        ):
            other = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _TRY_TO_LOCK, file.name],
                capture_output=True,
                text=True,
            )
    except OSError as error:
        found = f"a file in {place} cannot be locked: {error.strerror}"
        return Check("file_locks", "problem", found, hint)
    if other.returncode == _REFUSED:
        return Check("file_locks", "ok", f"locks work in {place}")
    if other.returncode == 0:
        found = f"two processes got the same lock in {place}: two runs could collide"
    else:
        found = f"the trial in {place} failed: {other.stderr.strip()[-200:]}"
    return Check("file_locks", "problem", found, hint)


# A run of the sample data leaves 4 MiB, Beam's temporary files of real data some GiB.
_SCARCE_BYTES = 2 * 2**30
_TOO_LITTLE_BYTES = 100 * 2**20
_TOO_FEW_FILES = 1000


def check_disk_space(check: str, folder: Path) -> Check:
    """Returns the free space for this user, in bytes and in files (inodes)."""
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
