"""Consoles and tables of rich, for a terminal or a pipe, on stdout or stderr.

Text from data, files and arguments may contain control characters and rich's markup:
the console escapes whatever string it prints, also in the cells of a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.style import Style
from rich.table import Table
from rich.text import Text

from sluice.errors import printable

_WIDE = 200


class PlainConsole(Console):
    """A console that escapes strings, and goes on where nobody reads its output."""

    def render_str(self, text: str, *, style: str | Style = "", **_: Any) -> Text:
        return Text(printable(text), style=style)

    def on_broken_pipe(self) -> None:
        """Drops all further output: a run goes on where `head` has seen enough."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def make_console(*, to_stderr: bool = False) -> Console:
    """Returns a console; rich honours NO_COLOR and plain pipes by itself."""
    console = PlainConsole(stderr=to_stderr)
    if not console.is_terminal:
        # A log file has no width: never break a table's row or a path.
        console.width = _WIDE
    return console


def make_table(
    *columns: str,
    folded: Collection[str] = (),
    right: Collection[str] = (),
    **options: Any,
) -> Table:
    """Returns a table without lines.

    Args:
      columns: their titles.
      folded: columns that are wrapped; the others are not.
      right: columns that are right-aligned, such as numbers.
      **options: of rich's table.
    """
    options = {"box": None, "padding": (0, 2, 0, 0), "header_style": "dim", **options}
    table = Table(**options)
    for column in columns:
        table.add_column(
            column,
            no_wrap=column not in folded,
            overflow="fold",
            justify="right" if column in right else "left",
        )
    return table


def plain(text: str, style: str = "") -> Text:
    """Returns one line in a style, control characters escaped."""
    return Text(printable(text), style=style)


def say(console: Console, text: str = "", style: str = "") -> None:
    """Prints one line, which the terminal wraps: paths and commands can be copied."""
    console.print(plain(text, style), soft_wrap=True)


@contextmanager
def make_progress(total: int) -> Iterator[Callable[[], None]]:
    """Draws a bar on stderr, in a terminal; yields what counts one more as done.

    Without a thread, so that the caller may fork.
    """
    console = make_console(to_stderr=True)
    disable = not console.is_terminal
    with Progress(console=console, auto_refresh=False, disable=disable) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.update(task, advance=1, refresh=True)
