"""What makes a node run again beyond its inputs: its code and its packages.

TFX's cache key has a node's inputs and exec properties. It has neither the code that
user functions run (when given by import path) nor the version of anything. So each
node carries one more exec property, ``fingerprint``: a JSON object, so that a later
run can say which part of it changed. The node's slice of the config is in its exec
properties already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluice import code_fingerprint
from sluice.workspace import installed_version

PROPERTY = "fingerprint"


def stamp(
    component: Any,
    *,
    packages: Sequence[str],
    code: Sequence[str] = (),
    roots: Sequence[Path] = (),
) -> Any:
    """Adds the fingerprint to a component and returns it.

    Args:
      component: a TFX component, changed in place.
      packages: distributions whose version the node's result depends on.
      code: modules that the node runs; what they import below ``roots`` counts too.
      roots: the directories of this project and of the user's.
    """
    parts = {
        "code": code_fingerprint.digests_of(code, roots),
        "packages": {name: installed_version(name) for name in packages},
    }
    component.exec_properties[PROPERTY] = json.dumps(parts, sort_keys=True)
    return component
