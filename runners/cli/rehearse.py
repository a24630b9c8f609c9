"""``sluice rehearse NAME``: runs the compiled pipeline here, as its service would."""

from __future__ import annotations

from runners.cli.options import Result, config_options, verb
from runners.cli.run_view import show_run
from runners.operations.rehearse import rehearse


@verb()
@config_options
def command(name: str, profile: str | None, overrides: tuple[str, ...]) -> Result:
    """Rehearse the pipeline NAME on this machine.

    The compiled pipeline runs task after task, each by its real command line, with a
    folder in place of buckets. 'sluice diff NAME' compares it with the last local run
    that pushed. A further call finds the model of the first one as its baseline.
    """
    return show_run(rehearse, name, profile=profile, overrides=overrides)
