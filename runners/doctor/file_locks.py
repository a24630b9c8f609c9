"""Whether file locks hold where the workspace is: not all network disks have them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from runners.doctor.check import Check
from runners.doctor.existing_parent import existing_parent
from sluice.storage import atomic

_REFUSED = 3
_TRY_TO_LOCK = f"""
import fcntl, sys
try:
    fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit({_REFUSED})
"""


def check_file_locks(folder: Path) -> Check:
    """Locks a file and lets another process try the same.

    Args:
      folder: of the workspaces; the nearest above it is used where it does not exist.
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
        return Check("file_locks", "ok", f"they hold in {place}")
    if other.returncode == 0:
        found = f"two processes got the same lock in {place}: two runs could collide"
    else:
        found = f"the trial in {place} failed: {other.stderr.strip()[-200:]}"
    return Check("file_locks", "problem", found, hint)
