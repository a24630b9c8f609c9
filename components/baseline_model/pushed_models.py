"""Finds the latest blessed model in the model store, without ML Metadata.

Only blessed models are pushed, and a version's record has the address of the trained
model that it was copied from.
"""

from __future__ import annotations

from serving.model_store import store_at
from sluice.storage.storage import storage_for

LOOK_UP, NO_BASELINE = "", "none"
"""Values of the runtime parameter ``baseline``, which otherwise is a version's number.

A run that is pinned to a version does not see the versions of later pushes.
"""


def pin_baseline(serving_dir: str) -> str:
    """Returns the parameter ``baseline`` of a run that is submitted now.

    Raises:
      ServingError: the model store cannot be read.
    """
    newest = store_at(serving_dir).newest()
    return NO_BASELINE if newest is None else str(newest.version)


def find_baseline(
    serving_dir: str, pinned: str
) -> tuple[str | None, list[tuple[str, str]]]:
    """Finds the newest version whose trained model still exists.

    Args:
      serving_dir: of the model store.
      pinned: the parameter ``baseline``.

    Returns:
      The URI of the trained model, None if there is none; and the names of newer
      versions, each with the reason why it was skipped.

    Raises:
      ServingError: the model store cannot be read.
    """
    skipped: list[tuple[str, str]] = []
    if pinned == NO_BASELINE:
        return None, skipped
    for version in reversed(store_at(serving_dir).versions()):
        uri = version.facts.get("model_uri")
        if not uri or (pinned != LOOK_UP and version.version > int(pinned)):
            continue
        if storage_for(uri).exists(uri):
            return uri, skipped
        name = f"version {version.version}"
        skipped.append((name, f"missing: nothing is at {uri}"))
    return None, skipped
