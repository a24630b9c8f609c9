"""Text for a comment of a file that is written."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Returns text without what would end a comment, such as a name's line break."""
    return "".join(c if c.isprintable() else "?" for c in text)
