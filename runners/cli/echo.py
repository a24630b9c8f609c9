"""Prints without rich: text, JSON and errors.

Together with ``console`` the only way to the terminal. What comes from data, files and
arguments may hold anything, so each line is escaped here.
"""

from __future__ import annotations

import json
from typing import Any

import click

from sluice.printable import printable, printable_output


def echo(*lines: str, err: bool = False, **style: Any) -> None:
    """Prints lines, to stderr if ``err``; ``style`` is that of ``click.style``."""
    click.secho("\n".join(map(printable, lines)), err=err, **style)


def echo_output(text: str) -> None:
    """Prints what a program has printed, colours included, as it was divided."""
    click.echo(printable_output(text), nl=False)


def echo_json(value: Any) -> None:
    """Prints a value as JSON on one line of stdout."""
    click.echo(json.dumps(value))


def echo_error(text: str) -> None:
    """Prints an error as ``SluiceError`` has it."""
    click.secho("error: ", fg="red", bold=True, err=True, nl=False)
    echo(*text.split("\n"), err=True)


def echo_warning(text: str) -> None:
    """Prints a warning to stderr."""
    echo(*f"warning: {text}".split("\n"), err=True)
