"""``sluice validate NAME``: checks config, schema and code; runs nothing."""

from __future__ import annotations

import click

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from pipeline.graph.check_inputs import check_inputs
from runners.cli.options import config_options
from runners.cli.say import say
from sluice.errors import UsageError
from sluice.project import activate


@click.command()
@config_options
def validate(name: str, profile: str | None, overrides: tuple[str, ...]) -> None:
    """Check the config NAME without running anything or importing TensorFlow.

    Missing data is only a warning here: it may not have arrived yet.
    """
    config = load_config(name, profile=profile, overrides=overrides)
    activate(config.root)
    warnings = list(validate_config(config).warnings)
    try:
        check_inputs(config)
    except UsageError as error:
        warnings.append(str(error))
    for warning in warnings:
        say(*f"warning: {warning}".split("\n"), fg="yellow", err=True)
    say(f"{config.origin.file}: valid")
