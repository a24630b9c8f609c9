"""The one place that knows where people read: a terminal, a pipe, or stderr."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from sluice.printable import printable

_WIDE = 200


def make_console(*, to_stderr: bool = False) -> Console:
    """Returns a console; rich honours NO_COLOR and plain pipes by itself."""
    console = Console(stderr=to_stderr, highlight=False)
    if not console.is_terminal:
        # A log file has no width: never break a table's row or a path.
        console = Console(stderr=to_stderr, highlight=False, width=_WIDE)
    return console


def plain(text: str, style: str = "") -> Text:
    """Returns one line that is shown as it is: no markup, no control characters."""
    return Text(printable(text), style=style)


def plain_lines(lines: Iterable[str], style: str = "") -> Text:
    """Returns several such lines."""
    return Text("\n".join(map(printable, lines)), style=style)
