"""Compares a reviewed schema with data, for ``sluice schema diff`` and ``accept``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pipeline.config.config import Config
from runners.cli.console import make_console, plain
from runners.cli.options import workspace_option
from runners.cli.schema_command import run_command, schema_command
from runners.cli.schema_source import Source, expectations, from_data, from_run
from schemas.diff.diff_schema import Diff, diff_schema
from schemas.edit.edit_schema import read_schema_text
from schemas.loader import load
from sluice.errors import DataError, UsageError

_SOURCE_OPTIONS = (
    click.option("run_id", "--run", metavar="ID", help="Of this run's statistics."),
    click.option("--data", is_flag=True, help="Count all records of the files, now."),
    workspace_option,
)


@dataclass(frozen=True)
class Compared:
    """A schema's file beside what data shows."""

    config: Config
    path: Path
    text: str
    source: Source
    diff: Diff

    def head(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "pipeline": self.config.name,
            "schema": str(self.path),
            "source": {**self.source.facts, "splits": self.source.observed.splits},
        }


def source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--run``, ``--data`` and ``--workspace``."""
    for option in reversed(_SOURCE_OPTIONS):
        function = option(function)
    return function


def compare(
    config: Config, name: str, run_id: str | None, data: bool, workspace_dir: str | None
) -> Compared:
    """Returns what the data that the options name shows against the schema.

    Raises:
      UsageError: the schema is wrong, or there is no such data.
      DataError: there is no record.
      WorkspaceError: the run's statistics are damaged.
    """
    if data and run_id:
        raise UsageError("--run and --data exclude each other", hint="give one")
    path = config.schema_path
    text = read_schema_text(path) if path.is_file() else ""
    reviewed = load(path)
    source = from_data(config) if data else from_run(name, workspace_dir, run_id)
    if not source.observed.records:
        raise DataError(
            "there is no record to compare the schema with",
            where=source.text,
            hint=run_command(name),
        )
    found = diff_schema(reviewed, source.observed, expectations(config))
    return Compared(config, path, text, source, found)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def show_diff(compared: Compared, name: str, as_json: bool) -> None:
    """Prints the differences and their ids."""
    console = make_console(to_stderr=as_json)
    observed = compared.source.observed
    splits = ", ".join(observed.splits)
    for fact in (
        f"schema  {_short(compared.path)}",
        f"data    {compared.source.text}",
        f"        {observed.records:,} records, splits: {splits}",
    ):
        console.print(plain(fact, "dim"), soft_wrap=True)
    for change in compared.diff.changes:
        line = plain(f"{change.feature}: {change.text}")
        line.append_text(plain(f"  [{change.id}]", "dim"))
        console.print(line, soft_wrap=True)
        if change.refusal:
            console.print(plain(f"  not to be accepted: {change.refusal}", "dim"))
    for note in compared.diff.notes:
        console.print(plain(f"note: {note}", "dim"), soft_wrap=True)
    if not compared.diff.changes:
        console.print("no difference")
    possible = [change.id for change in compared.diff.changes if not change.refusal]
    if possible:
        wanted = possible[0] if len(possible) == 1 else "CHANGE..."
        command = schema_command("accept", name, wanted)
        console.print()
        text = plain(f"if the data is right: {command}", "dim")
        console.print(text, soft_wrap=True)
