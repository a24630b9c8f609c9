"""Writes a verdict into its artifact: JSON for programs, a table for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sluice import atomic
from sluice.verdict import VERDICT_FILE, Verdict, as_text


def publish_verdict(verdict: Verdict, artifact: Any) -> None:
    """Writes both files below ``artifact.uri`` and sets its property ``passed``."""
    folder = Path(artifact.uri)
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_json(folder / VERDICT_FILE, verdict.to_dict())
    atomic.write_text(folder / "verdict.txt", as_text(verdict.rows) + "\n")
    artifact.set_int_custom_property("passed", int(verdict.passed))
