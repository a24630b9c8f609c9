"""Commands to go on with after ``sluice schema``, of the same config and data."""

from __future__ import annotations

import click

from runners.cli.next_command import next_command


def schema_command(verb: str, name: str, *changes: str) -> str:
    """Returns ``sluice schema VERB NAME`` with the source that the current one has."""
    given = click.get_current_context().params
    source = ["--data"] * given["data"]
    source += ["--run", given["run_id"]] if given["run_id"] else []
    return next_command("schema", verb, name, *changes, *_config_options(), *source)


def run_command(name: str, *options: str) -> str:
    """Returns ``sluice run NAME`` of the config that the current command has."""
    return next_command("run", name, *_config_options(), *options)


def _config_options() -> list[str]:
    given = click.get_current_context().params
    profile = ["--profile", given["profile"]] if given["profile"] else []
    return profile + [x for item in given["overrides"] for x in ("--set", item)]
