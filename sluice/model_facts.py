"""What an exported model says of itself: task, classes, features and threshold."""

from __future__ import annotations

import json
import os
from typing import Any

from sluice.metrics import THRESHOLD
from sluice.storage.storage import storage_for

SERVING_DIR = "Format-Serving"  # Of a ``Model`` artifact of TFX.
CLASSES_FILE = "assets.extra/classes.json"


def read_facts(saved_model: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the facts of a SavedModel, local or remote; empty if it is not ours.

    Of ours there is always a ``threshold``, the probability from which on the positive
    class of two is predicted.
    """
    uri = os.path.join(saved_model, CLASSES_FILE)
    if not storage_for(uri).exists(uri):
        return {}
    defaults: dict[str, Any] = {"task": "classification", "threshold": THRESHOLD}
    return defaults | json.loads(storage_for(uri).read(uri))
