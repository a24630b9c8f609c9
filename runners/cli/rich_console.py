"""Consoles and tables of rich, for a terminal or a pipe, on stdout or stderr.

Text from data, files and arguments may contain control characters and rich's markup:
``say`` and the cells of ``make_table`` are escaped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.table import Table
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


class _EscapedTable(Table):
    def add_row(
        self,
        *cells: RenderableType | None,
        style: StyleType | None = None,
        end_section: bool = False,
    ) -> None:
        escaped = (plain(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*escaped, style=style, end_section=end_section)


def make_table(
    *columns: str,
    folded: Collection[str] = (),
    right: Collection[str] = (),
    **options: Any,
) -> Table:
    """Returns a table without lines, whose cells are escaped.

    Args:
      columns: their titles.
      folded: columns that are wrapped; the others are not.
      right: columns that are right-aligned, such as numbers.
      **options: of rich's table.
    """
    options = {"box": None, "padding": (0, 2, 0, 0), "header_style": "dim", **options}
    table = _EscapedTable(**options)
    for column in columns:
        table.add_column(
            plain(column),
            no_wrap=column not in folded,
            overflow="fold",
            justify="right" if column in right else "left",
        )
    return table


def plain(text: str, style: str = "") -> Text:
    """Returns one line without markup, control characters escaped."""
    return Text(printable(text), style=style)


def say(console: Console, text: str = "", style: str = "") -> None:
    """Prints one line, which the terminal wraps: paths and commands can be copied."""
    console.print(plain(text, style), soft_wrap=True)


def plain_lines(lines: Iterable[str], style: str = "") -> Text:
    """Returns several lines; see ``plain``."""
    return Text("\n".join(map(printable, lines)), style=style)


def ignore_broken_pipe(
    console: Console, show: Callable[..., Any], *arguments: Any
) -> None:
    """Calls a function that prints; if the pipe is closed, drops all further output."""
    try:
        show(*arguments)
    except (OSError, SystemExit):
        # rich turns a broken pipe into the end of the program.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2 if console.stderr else 1)
        os.close(nowhere)
