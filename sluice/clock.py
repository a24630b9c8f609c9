"""The current time as text.

Nothing else is imported, so that the code of a node that needs it stays small.
"""

from __future__ import annotations

from datetime import datetime, timezone


def utc_now(timespec: str = "seconds") -> str:
    """Returns the time as ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec=timespec)
