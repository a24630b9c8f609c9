"""Progress reports of nodes, from any process.

The runner names a file to a node (``node_environment``), which appends one JSON object
per line. Without it, such as in a container, they go to the log.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from sluice.node_environment import node_environment
from sluice.secrets import redact


def is_followed() -> bool:
    """Whether a runner reads the reports of this process."""
    return bool(node_environment().progress_file)


def report(**facts: Any) -> None:
    """Appends one line of facts, its strings redacted, in a single write.

    ``line`` is a text for people, which goes to the log too.
    """
    path = node_environment().progress_file
    facts = {k: redact(v) if isinstance(v, str) else v for k, v in facts.items()}
    if "line" in facts or not path:
        print(facts.get("line") or json.dumps(facts), file=sys.stderr, flush=True)
    if not path:
        return
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(facts).encode() + b"\n")


def note(line: str, **facts: Any) -> None:
    """Reports a line that is also kept: it ends in the notes of the run's record."""
    report(line=line, note=True, **facts)


def read(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Returns the complete lines after ``offset`` and the offset after them (bytes).

    A line that a full disk has truncated is skipped.
    """
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    end = data.rfind(b"\n") + 1
    lines = []
    for line in data[:end].splitlines():
        with suppress(ValueError, RecursionError):
            lines.append(json.loads(line))
    return lines, offset + end
