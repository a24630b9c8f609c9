"""Parts of the pictures that benchmarks draw as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Of Okabe and Ito, which the colour blind can tell apart.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#999999")


def text(x: float, y: float, content: str, anchor: str = "start") -> str:
    """Returns a text; ``anchor`` is ``start``, ``middle`` or ``end``."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(content)}</text>'


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    """Returns the picture with its parts on a white ground."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" '
        f'fill="#222">\n<rect width="{width}" height="{height}" fill="#fff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
