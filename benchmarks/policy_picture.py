"""Draws what policies have served each day, and on which days they trained, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from benchmarks.svg import COLORS, picture, text

LEFT, COLUMN, TOP, BOTTOM, ROW = 110, 25, 105, 365, 24
LEAST, MOST = 0.6, 1.0


def draw(
    titles: Mapping[int, str],
    auc: Mapping[str, Mapping[int, float]],
    marks: Mapping[str, Mapping[int, str]],
) -> str:
    """Returns the picture.

    Args:
      titles: what is special of a day.
      auc: by policy, of what was served at the end of a day on the following one.
      marks: by policy and day ``trained``, ``not trained`` or ``stopped``.
    """
    last = max(day for found in auc.values() for day in found)
    width, height = _x(last + 1) + 20, BOTTOM + ROW * (len(auc) + 2) + 14
    parts = []
    for day, title in titles.items():
        parts += [
            f'<path d="M{_x(day)} {TOP}V{BOTTOM + ROW * len(auc) + 8}" stroke="#ddd"/>',
            f'<text transform="translate({_x(day) + 3} {TOP - 6}) rotate(-50)">'
            f"{escape(title)}</text>",
        ]
    for tenth in range(round(LEAST * 10), round(MOST * 10) + 1):
        y = _y(tenth / 10)
        parts += [
            f'<path d="M{LEFT} {y}H{_x(last + 1)}" stroke="#eee"/>',
            text(LEFT - 8, y + 4, f"{tenth / 10:.1f}", "end"),
        ]
    parts += [text(12, TOP + 4, "AUC of what"), text(12, TOP + 20, "is served")]
    for at, ((policy, found), color) in enumerate(
        zip(auc.items(), COLORS, strict=False)
    ):
        line = " ".join(f"{_x(day + 1)},{_y(x):.1f}" for day, x in found.items())
        y = BOTTOM + ROW * (at + 1)
        parts += [
            f'<polyline points="{line}" fill="none" stroke="{color}" '
            'stroke-width="2"/>',
            f'<path d="M12 {y}h16" stroke="{color}" stroke-width="3"/>',
            text(34, y + 4, policy),
            *(_mark(_x(day), y, mark, color) for day, mark in marks[policy].items()),
        ]
    y = BOTTOM + ROW * (len(auc) + 1)
    for day in range(1, last + 2):
        parts.append(text(_x(day), y, f"{day}", "middle"))
    parts.append(text(12, y, "day"))
    for at, mark in enumerate(("trained", "not trained", "stopped")):
        x = LEFT + 130 * at
        parts += [_mark(x, y + ROW - 4, mark, "#444"), text(x + 12, y + ROW, mark)]
    return picture(width, height, parts)


def _x(day: int) -> int:
    return LEFT + COLUMN * day


def _y(auc: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * (max(auc, LEAST) - LEAST) / (MOST - LEAST)


def _mark(x: float, y: float, mark: str, color: str) -> str:
    if mark == "trained":
        return f'<circle cx="{x}" cy="{y}" r="6" fill="{color}"/>'
    if mark == "stopped":
        path = f"M{x - 5} {y - 5}l10 10m0 -10l-10 10"
        return f'<path d="{path}" stroke="{color}" stroke-width="3"/>'
    return f'<circle cx="{x}" cy="{y}" r="2" fill="{color}" opacity="0.5"/>'
