"""A message as protobuf's text in one line, as it stands in a reviewed schema."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format


def one_line(message: Any) -> str:
    """Returns the fields of a message, such as ``presence { min_fraction: 0.9 }``."""
    return text_format.MessageToString(message, as_one_line=True, as_utf8=True).strip()
