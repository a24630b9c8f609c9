"""One row of ``sluice doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckState = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Check:
    """What was looked at, and what to do about it.

    Attributes:
      check: what was looked at; stable, for scripts.
      state: ``problem`` where runs will fail, ``warning`` where they may or are slow.
      found: what is there.
      hint: what to do; None where nothing needs doing.
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
