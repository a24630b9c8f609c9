"""Text that may hold anything, as a terminal can show it."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """Returns text with what would disturb a terminal escaped, such as a name's."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
