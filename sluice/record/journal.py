"""The events of a run in the order in which they happened, one JSON object a line.

Lines are only ever appended, so whatever kills the run leaves those that were written.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

_FILE = "journal.jsonl"


class Journal:
    """The journal in the folder of a run, which one process at a time writes."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / _FILE

    def append(self, event: dict[str, Any]) -> dict[str, Any]:
        """Writes an event and returns it with the time, ``at``, when it was written."""
        at = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        dated = {"at": at, **event}
        line = json.dumps(dated).encode() + b"\n"
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                # A full disk has cut the last line short.
                line = b"\n" + line
            os.write(handle, line)
        finally:
            os.close(handle)
        return dated

    def events(self) -> list[dict[str, Any]]:
        """Returns the events so far; a line that a kill has cut short is left out."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        events = []
        for line in lines:
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
        return events
