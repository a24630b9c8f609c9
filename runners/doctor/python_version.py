"""Which Python runs this, and whether it is the project's own."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from runners.doctor.check import Check
from sluice.project import own_root

# TFX 1.16 and TFX 1.21; see setup/environment.sh.
_LOCKED_MINORS = ((3, 10), (3, 12))


def check_python() -> Check:
    """Returns version and executable; warns outside the project's environment."""
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] not in _LOCKED_MINORS:
        known = " and ".join(f"{major}.{minor}" for major, minor in _LOCKED_MINORS)
        hint = f"the locks are for Python {known}: make setup, then .venv/bin/sluice"
        return Check("python", "warning", found, hint)
    if Path(sys.prefix).resolve().parent != own_root():
        return Check(
            "python",
            "warning",
            f"{found}: not the project's environment",
            f"make setup in {own_root()}, then .venv/bin/sluice",
        )
    return Check("python", "ok", f"{found}: the project's environment")
