"""Finds the latest blessed model in the model store, without ML Metadata.

Only blessed models are pushed, and a version's record has the address of the trained
model that it was copied from.
"""

from __future__ import annotations

from serving.model_store import store_at
from sluice.storage.storage import storage_for

LOOK_UP, NO_BASELINE = "", "none"
"""Values of the runtime parameter ``baseline``, which otherwise is a model's URI."""

_MODEL_DIR = "Format-Serving"


def latest_pushed_model(serving_dir: str) -> str | None:
    """Returns the URI of the trained model that was pushed last; None if there is none.

    A model that has been deleted is skipped, and the one pushed before is returned.

    Raises:
      ServingError: the model store cannot be read.
    """
    for version in reversed(store_at(serving_dir).versions()):
        uri = version.facts.get("model_uri")
        if uri and storage_for(uri).exists(f"{uri}/{_MODEL_DIR}"):
            return uri
    return None
