"""Consoles of rich, for a terminal or a pipe, on stdout or stderr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
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


def make_table(*columns: str, folded: str = "", **options: Any) -> Table:
    """Returns a table without lines; only the column ``folded`` is wrapped."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", **options)
    for column in columns:
        table.add_column(column, no_wrap=column != folded, overflow="fold")
    return table


def plain(text: str, style: str = "") -> Text:
    """Returns one line without markup, control characters escaped."""
    return Text(printable(text), style=style)


def print_line(console: Console, text: str, style: str = "") -> None:
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
