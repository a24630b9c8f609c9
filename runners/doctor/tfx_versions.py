"""The packages that decide results."""

from __future__ import annotations

from runners.doctor.check import Check
from sluice.workspace import installed_version

_PACKAGES = (
    "tfx",
    "tensorflow",
    "apache-beam",
    "ml-metadata",
    "tensorflow-data-validation",
    "tensorflow-transform",
    "tensorflow-model-analysis",
)


def check_tfx_versions() -> Check:
    """Returns the versions of TFX and of what it stands on; a missing one is bad."""
    versions = {package: installed_version(package) for package in _PACKAGES}
    missing = [package for package, version in versions.items() if version is None]
    if missing:
        found = f"not installed: {', '.join(missing)}"
        return Check("versions", "problem", found, "make setup")
    found = ", ".join(f"{package} {version}" for package, version in versions.items())
    return Check("versions", "ok", found)
