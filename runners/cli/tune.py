"""``sluice tune NAME``: searches for values, and writes the best into the config."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from pipeline.config.config import Config
from reports import formats
from runners.cli.options import Result, config_argument, typed_command, verb
from runners.cli.rich_console import make_console, say
from runners.cli.run_view import RunView
from runners.engine import Engine
from runners.operations.find_run import config_words
from runners.operations.tune import tune
from sluice.workspace import next_command


@verb()
@config_argument
@click.option("--apply", is_flag=True, help="Write the best values into the config.")
@click.pass_obj
def command(engine: Engine | None, config: Config, apply: bool) -> Result:
    """Search for the values in 'tune' of the pipeline NAME, without training a model.

    Runs the nodes up to the Tuner, and prints the values of the best trial.
    """
    with RunView() as view:
        tuned = tune(
            config,
            is_applied=apply,
            command=typed_command(),
            observer=view,
            engine=engine,
        )
    result = view.result(tuned.record)
    if tuned.trials is None:
        return result
    more = {"trials": tuned.trials["trials"], "applied": tuned.applied}
    show = partial(_print_best, tuned.trials, config, apply)
    return Result({**tuned.record.to_dict(), **more}, show)


def _print_best(found: Mapping[str, Any], config: Config, is_applied: bool) -> None:
    best, console, file = found["trials"][0], make_console(), config.origin.file
    reached = f"{found['objective']} {formats.number(best['objective'])}"
    which = f"trial {best['number']} of {len(found['trials'])}"
    say(console, f"{which} is the best: {reached}", "green")
    for key, value in best["values"].items():
        say(console, f"  {key}: {formats.setting(value)}")
    told = f"written into {file}" if is_applied else f"--apply writes them into {file}"
    say(console, told)
    command = next_command("try", *config_words(config))
    say(console, f"train a model with them, and push none: {command}")
