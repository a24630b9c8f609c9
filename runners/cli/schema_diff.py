"""``sluice schema diff NAME``: where data differs from the reviewed schema."""

from __future__ import annotations

import click

from pipeline.config.load import load_config
from runners.cli.options import config_options, json_option
from runners.cli.say import say_json
from runners.cli.schema_compare import compare, show_diff, source_options
from sluice.errors import ExitCode


@click.command(short_help="Say where data differs from the reviewed schema.")
@config_options
@source_options
@click.option("--check", is_flag=True, help="Exit with 3 where there is a difference.")
@json_option
def diff(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    run_id: str | None,
    data: bool,
    workspace_dir: str | None,
    check: bool,
    as_json: bool,
) -> None:
    """Say where data differs from the reviewed schema of the pipeline NAME.

    The data is what the last run has counted (StatisticsGen), or with --data all
    records of the config's files as they are now. The name in brackets at the end of
    a line is what `sluice schema accept` takes.
    """
    config = load_config(name, profile=profile, overrides=overrides)
    compared = compare(config, name, run_id, data, workspace_dir)
    show_diff(compared, name, as_json)
    if as_json:
        changes = [change.to_dict() for change in compared.diff.changes]
        notes = list(compared.diff.notes)
        document = {**compared.head(), "changes": changes, "notes": notes}
        say_json(document)
    if check and compared.diff.changes:
        click.get_current_context().exit(ExitCode.DATA)
