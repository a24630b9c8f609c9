"""Prints text, JSON and errors without rich.

Only this module and ``rich_console`` print. Text from data, files and arguments may
contain control characters, so every line is escaped here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from runners.engine import Observer
from sluice.errors import printable, printable_output


def echo(*lines: str, err: bool = False, **style: Any) -> None:
    """Prints lines, to stderr if ``err``; ``style`` is that of ``click.style``."""
    click.secho("\n".join(map(printable, lines)), err=err, **style)


def echo_output(text: str) -> None:
    """Prints the output of another program; colours and line breaks are kept."""
    click.echo(printable_output(text), nl=False)


def echo_json(value: Any) -> None:
    """Prints a value as JSON on one line of stdout."""
    click.echo(json.dumps(value))


def echo_error(text: str) -> None:
    """Prints the text of a ``SluiceError`` to stderr."""
    click.secho("error: ", fg="red", bold=True, err=True, nl=False)
    echo(*text.split("\n"), err=True)


def echo_warning(text: str) -> None:
    """Prints a warning to stderr."""
    echo(*f"warning: {text}".split("\n"), err=True, fg="yellow")


@contextmanager
def echoed_warnings() -> Iterator[None]:
    """Prints the warnings of the log ``sluice`` to stderr, and nowhere else."""
    import logging  # Not for --help.

    class EchoHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            echo_warning(record.getMessage())

    log, handler = logging.getLogger("sluice"), EchoHandler()
    propagated = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated


class EchoObserver(Observer):
    """Prints the notes and warnings of an operation on stderr."""

    def on_note(self, text: str) -> None:
        echo(text, err=True)

    def on_warning(self, text: str) -> None:
        echo_warning(text)
