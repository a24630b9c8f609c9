"""What a misspelt name probably means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from sluice.errors import UsageError


def did_you_mean(word: object, known: Iterable[object]) -> str | None:
    """Returns a hint that names what a misspelt name probably means, or None."""
    names = {str(name).casefold(): str(name) for name in known}
    close = difflib.get_close_matches(str(word).casefold(), names, n=1, cutoff=0.5)
    return f"did you mean {names[close[0]]!r}?" if close else None


def unknown_node(node: str, known: Sequence[str], where: object) -> UsageError:
    """Returns the error for a node that is not among those known in a place."""
    return UsageError(
        f"there is no node {node!r}",
        where=where,
        expected="one of " + ", ".join(known) if known else None,
        hint=did_you_mean(node, known),
    )
