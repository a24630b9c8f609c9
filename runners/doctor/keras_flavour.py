"""Which Keras ``tf.keras`` is in a run; see ``sluice.compat``."""

from __future__ import annotations

import os

from packaging.version import Version

from runners.doctor.check import Check
from sluice.workspace import installed_version

_VARIABLE = "TF_USE_LEGACY_KERAS"


def check_keras_flavour() -> Check:
    """Checks that legacy Keras is there, and warns where the environment asks for 3."""
    legacy, tensorflow = installed_version("tf-keras"), installed_version("tensorflow")
    if legacy is None or tensorflow is None:
        missing = "tensorflow" if legacy else "tf-keras"
        return Check("keras", "problem", f"{missing} is not installed", "make setup")
    found = f"legacy: tf-keras {legacy}"
    if Version(legacy).release[:2] != Version(tensorflow).release[:2]:
        found += f" beside tensorflow {tensorflow}"
        hint = "both must be of the same minor version: make setup"
        return Check("keras", "problem", found, hint)
    asked = os.environ.get(_VARIABLE)
    if asked not in (None, "1"):
        return Check(
            "keras",
            "warning",
            f"{found}; the environment says {_VARIABLE}={asked}",
            "Sluice sets it to 1 in its runs; unset it, so that your own scripts "
            "load the models with the same Keras",
        )
    return Check("keras", "ok", found)
