"""Checks versions of Python, TFX, TensorFlow, Beam, protobuf and Keras."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from runners.doctor.check import Check
from sluice.project import own_root
from sluice.workspace import installed_version

# TFX 1.16 and TFX 1.21; see setup/environment.sh.
_LOCKED_MINORS = ((3, 10), (3, 12))


def check_python() -> Check:
    """Returns Python's version and path; warns outside the project's environment."""
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
    """Returns the versions of TFX and its main dependencies; all must be installed."""
    versions = {package: installed_version(package) for package in _PACKAGES}
    missing = [package for package, version in versions.items() if version is None]
    if missing:
        found = f"not installed: {', '.join(missing)}"
        return Check("versions", "problem", found, "make setup")
    found = ", ".join(f"{package} {version}" for package, version in versions.items())
    return Check("versions", "ok", found)


def check_beam_engine() -> Check:
    """Returns Beam's version and the runner that local pipelines name."""
    # Imported here: it needs pydantic, and the other checks run without any package.
    from pipeline.graph.locations import LOCAL_BEAM_ARGS

    version = installed_version("apache-beam")
    if version is None:
        return Check("beam", "problem", "apache-beam is not installed", "make setup")
    runner = LOCAL_BEAM_ARGS[0].removeprefix("--runner=")
    return Check("beam", "ok", f"{version}, in the node's process: {runner}")


_PROTOBUF_VARIABLE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"


def check_protobuf_runtime() -> Check:
    """Returns protobuf's version and implementation; warns of ``python``."""
    version = installed_version("protobuf")
    try:
        from google.protobuf.internal import api_implementation
    except ImportError as error:
        return Check(
            "protobuf", "problem", f"it cannot be imported: {error}", "make setup"
        )
    found = f"{version}, {api_implementation.Type()}"
    if api_implementation.Type() == "python":
        hint = f"slow: unset {_PROTOBUF_VARIABLE}, or run make setup again"
        return Check("protobuf", "warning", found, hint)
    return Check("protobuf", "ok", found)


_KERAS_VARIABLE = "TF_USE_LEGACY_KERAS"


def check_keras_flavour() -> Check:
    """Checks that legacy Keras is installed and not disabled by the environment."""
    legacy, tensorflow = installed_version("tf-keras"), installed_version("tensorflow")
    if legacy is None or tensorflow is None:
        missing = "tensorflow" if legacy else "tf-keras"
        return Check("keras", "problem", f"{missing} is not installed", "make setup")
    found = f"legacy: tf-keras {legacy}"
    if legacy.split(".")[:2] != tensorflow.split(".")[:2]:
        found += f" beside tensorflow {tensorflow}"
        hint = "both must be of the same minor version: make setup"
        return Check("keras", "problem", found, hint)
    asked = os.environ.get(_KERAS_VARIABLE)
    if asked not in (None, "1"):
        return Check(
            "keras",
            "warning",
            f"{found}; the environment says {_KERAS_VARIABLE}={asked}",
            "Sluice sets it to 1 in its runs; unset it, so that your own scripts "
            "load the models with the same Keras",
        )
    return Check("keras", "ok", found)
