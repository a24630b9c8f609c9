"""Reads a verdict from its artifact."""

from __future__ import annotations

import json
import os

from components.tfrecord_gen.reading import storage
from sluice.verdict import VERDICT_FILE, Verdict


def read_verdict(folder: str) -> Verdict:
    """Reads what ``publish_verdict`` wrote.

    Args:
      folder: the artifact's, local or an address.

    Raises:
      OSError: it is not there.
    """
    with storage.open_file(os.path.join(folder, VERDICT_FILE), "rb") as file:
        return Verdict.from_dict(json.loads(file.read()))
