"""Escapes arbitrary text for display in a terminal."""

from __future__ import annotations

import json
import re

# Colours and the like ("select graphic rendition"), which move nothing.
_KEPT = re.compile(r"(\x1b\[[0-9;:]*m|[\n\t])")
# A word or a quoted text, such as a value that somebody has given; not a path.
_LONG = re.compile(r"([^\s/'\"]{200})[^\s/'\"]+|((?<!\w)'[^']{200})[^']+(?=')")


def shorten(text: str) -> str:
    """Returns text with its long words and quoted texts cut at 200 characters."""
    return _LONG.sub(lambda match: f"{match[1] or match[2]}...", text)


def printable(text: str) -> str:
    """Returns text as one line, with what would disturb a terminal escaped."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def printable_output(text: str) -> str:
    """Returns a program's output with lines, tabs and colours; the rest is escaped."""
    parts = _KEPT.split(text)
    return "".join(part if i % 2 else printable(part) for i, part in enumerate(parts))
