"""Sizes as people read them."""

from __future__ import annotations


def in_gib(size_bytes: int) -> str:
    """Returns ``3.1 GiB``, or ``12 MiB`` below half a GiB."""
    if size_bytes < 2**29:
        return f"{size_bytes / 2**20:.0f} MiB"
    return f"{size_bytes / 2**30:.1f} GiB"
