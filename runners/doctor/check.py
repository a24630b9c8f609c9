"""Result of one check of ``sluice doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckState = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
      check: the name of the check; stable, for scripts.
      state: ``problem`` if runs will fail, ``warning`` if they may fail or are slow.
      found: the result, for people.
      hint: what to do; None if nothing has to be done.
    """

    check: str
    state: CheckState
    found: str
    hint: str | None = None


def in_gib(size_bytes: int) -> str:
    """Returns ``3.1 GiB``, or ``12 MiB`` below half a GiB."""
    if size_bytes < 2**29:
        return f"{size_bytes / 2**20:.0f} MiB"
    return f"{size_bytes / 2**30:.1f} GiB"
