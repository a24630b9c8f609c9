"""``sluice try NAME``: trains and judges a model without pushing it."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.run import command as run

_HELP = """Run the pipeline NAME up to its last gate: nothing is pushed.

The model never becomes a baseline, and the data is not stored as accepted. A run with
the same settings takes what was trained from the cache, and pushes it. Options and exit
codes are those of 'sluice run'.
"""

assert run.callback is not None
command = click.Command(
    "try",
    callback=partial(run.callback, no_push=True),
    params=[option for option in run.params if option.name != "no_push"],
    help=_HELP,
)
