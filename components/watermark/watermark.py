"""High-water mark of a schedule: the data of its last complete run.

Each compiled spec has a mark of its own, so that a changed config or changed code runs
once on the same data. See docs/adr/0010-scheduled-runs.md.
"""

from __future__ import annotations

import json
import os

from sluice.clock import utc_now
from sluice.storage.storage import storage_for

# Custom properties of the examples of a scheduled run: whether its data is new (1 or
# 0), and what identifies it.
NEW_DATA, DATA = "new_data", "data"


def read(uri: str) -> str | None:
    """Returns what identifies the data of the last complete run; None without one."""
    storage = storage_for(uri)
    if not storage.exists(uri):
        return None
    return json.loads(storage.read(uri))[DATA]


def advance(uri: str, data: str) -> None:
    """Records the data of a complete run.

    Args:
      uri: of the mark.
      data: what identifies it.
    """
    record = {DATA: data, "at": utc_now()}
    storage = storage_for(uri)
    storage.make_folder(os.path.dirname(uri))
    storage.write_atomically(uri, json.dumps(record).encode())
