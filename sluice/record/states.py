"""Labels and colors of run and node states.

The one table for terminal, SVG and Mermaid; a new state gets its row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class NodeLook:
    """How a node in some state is shown.

    Attributes:
      label: the word in a table.
      style: of rich, for a terminal.
      light: fill and stroke on a white page.
      dark: likewise on a dark one.
      dashed: whether its outline is.
    """

    label: str
    style: str
    light: tuple[str, str]
    dark: tuple[str, str]
    dashed: bool = False


_GREEN = ("#dafbe1", "#1a7f37"), ("#12261e", "#3fb950")
_BLUE = ("#ddf4ff", "#0969da"), ("#121d2f", "#58a6ff")
_YELLOW = ("#fff8c5", "#9a6700"), ("#272115", "#d29922")
_GREY = ("#eaeef2", "#57606a"), ("#1c2128", "#8b949e")
_ORANGE = ("#fff1e5", "#bc4c00"), ("#2a1a10", "#f0883e")
_RED = ("#ffebe9", "#cf222e"), ("#2d1517", "#f85149")
_WHITE = ("#ffffff", "#8c959f"), ("#0d1117", "#6e7681")

# By sluice.record.parts.NodeState.
NODE_STATES = {
    "ran": NodeLook("done", "green", *_GREEN),
    "cached": NodeLook("cached", "cyan", *_BLUE),
    "running": NodeLook("running", "yellow", *_YELLOW),
    "skipped": NodeLook("skipped", "dim", *_GREY, dashed=True),
    "blocked": NodeLook("blocked", "red", *_ORANGE, dashed=True),
    "failed": NodeLook("failed", "bold red", *_RED),
    "interrupted": NodeLook("interrupted", "red", *_ORANGE),
    "not_reached": NodeLook("-", "dim", *_WHITE, dashed=True),
}

# By sluice.record.run_record.RunStatus: the style for a terminal.
RUN_STYLES = {
    "succeeded": "green",
    "up_to_date": "cyan",
    "skipped": "cyan",
    "running": "yellow",
    "blocked": "red",
    "failed": "red",
    "interrupted": "red",
}

# How serious each is: the colour and the icon on a page.
Tone = Literal["good", "info", "active", "quiet", "warn", "bad"]
RUN_TONES: dict[str, Tone] = {
    "succeeded": "good",
    "up_to_date": "info",
    "skipped": "info",
    "running": "active",
    "blocked": "bad",
    "failed": "bad",
    "interrupted": "warn",
}
NODE_TONES: dict[str, Tone] = {
    "ran": "good",
    "cached": "info",
    "running": "active",
    "skipped": "quiet",
    "blocked": "warn",
    "failed": "bad",
    "interrupted": "warn",
    "not_reached": "quiet",
}
