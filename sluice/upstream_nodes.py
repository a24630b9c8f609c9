"""Upstream nodes in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def leading_to(
    wanted: Iterable[str], upstream: Mapping[str, Iterable[str]]
) -> set[str]:
    """Returns the wanted nodes and all upstream of them.

    Args:
      wanted: ids of nodes.
      upstream: the ids that each node waits for; those of no node are ignored.
    """
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in upstream and name not in found:
            found.add(name)
            waiting += upstream[name]
    return found
