"""Writes a verdict into its artifact: JSON for programs, a table for people."""

from __future__ import annotations

import json
import os
from typing import Any

from sluice.record.verdict import VERDICT_FILE, Verdict, as_text
from sluice.storage.storage import storage_for

_TEXT_FILE = "verdict.txt"


def publish_verdict(verdict: Verdict, artifact: Any) -> None:
    """Writes both files below ``artifact.uri`` and sets its property ``passed``.

    Args:
      verdict: of a gate.
      artifact: its folder is local or an address such as ``gs://bucket/verdict``.
    """
    storage = storage_for(artifact.uri)
    storage.make_folder(artifact.uri)
    document = json.dumps(verdict.to_dict(), indent=2)
    for name, text in (
        (VERDICT_FILE, document),
        (_TEXT_FILE, as_text(verdict.rows) + "\n"),
    ):
        storage.write_atomically(os.path.join(artifact.uri, name), text.encode())
    artifact.set_int_custom_property("passed", int(verdict.passed))
