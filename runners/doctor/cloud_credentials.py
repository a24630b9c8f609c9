"""Whether Google Cloud credentials are there; their contents are never read."""

from __future__ import annotations

import os
from pathlib import Path

from runners.doctor.check import Check

_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_DEFAULT = "application_default_credentials.json"


def check_cloud_credentials() -> Check:
    """Looks where Google's libraries look first, on this machine alone.

    A service account that the machine itself has (the metadata server) is not asked
    for: that takes the network.
    """
    named = os.environ.get(_VARIABLE)
    if named and os.access(named, os.R_OK) and Path(named).is_file():
        return Check("cloud", "ok", f"{_VARIABLE} names {named}")
    if named:
        found = f"{_VARIABLE} names {named}, which is not a readable file"
        return Check("cloud", "warning", found, f"correct or unset {_VARIABLE}")
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    default = Path(folder) / _DEFAULT
    if default.is_file():
        return Check("cloud", "ok", f"gcloud's default, {default}")
    return Check("cloud", "ok", "no credentials; runs on this machine need none")
