"""Messages as protobuf's text, as it stands in a reviewed schema."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format


def one_line(message: Any) -> str:
    """Returns the fields of a message, such as ``presence { min_fraction: 0.9 }``."""
    return message_text(message, as_one_line=True)


def message_text(message: Any, *, as_one_line: bool = False) -> str:
    """Returns a message as text; characters that cannot be printed are escaped."""
    text, escaped = (
        text_format.MessageToString(message, as_one_line=as_one_line, as_utf8=as_utf8)
        for as_utf8 in (True, False)
    )
    is_printable = text.replace("\n", "").isprintable()
    return (text if is_printable else escaped).strip()
