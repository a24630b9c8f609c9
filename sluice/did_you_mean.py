"""What a misspelt name probably means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: object, known: Iterable[object]) -> str | None:
    """Returns a hint that names what a misspelt name probably means, or None."""
    names = {str(name).casefold(): str(name) for name in known}
    close = difflib.get_close_matches(str(word).casefold(), names, n=1, cutoff=0.5)
    return f"did you mean {names[close[0]]!r}?" if close else None
