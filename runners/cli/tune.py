"""``sluice tune NAME``: searches for values, and writes the best into the config."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from pipeline.config.config import Config
from pipeline.config.tuned_values import write_values
from pipeline.graph.node_registry import TUNER
from reports import formats
from reports.read_run import RunData
from runners.cli.options import Result, config_argument, typed_command, verb
from runners.cli.rich_console import make_console, say
from runners.cli.run_view import run_with_view
from runners.engine import Engine
from runners.operations import run as operations
from runners.operations.pipeline_request import workspace_of
from sluice.errors import UsageError
from sluice.machine_resources import usable_cores
from sluice.record.run_record import RunOptions, RunRecord


@verb()
@config_argument
@click.option("--apply", is_flag=True, help="Write the best values into the config.")
@click.pass_obj
def command(engine: Engine | None, config: Config, apply: bool) -> Result:
    """Search for the values in 'tune' of the pipeline NAME, without training a model.

    Runs the nodes up to the Tuner, and prints the values of the best trial.
    """
    file = config.origin.file
    if config.tune is None:
        what = "there is nothing to tune: the config has no section 'tune'"
        raise UsageError(what, where=file)
    for key in config.tune.space if apply else ():
        place = config.origin.location(tuple(key.split(".")))
        if not place.startswith(file):
            what = f"--apply writes {file}, but {key} is set elsewhere"
            raise UsageError(what, where=place)
    options = RunOptions(workers=usable_cores(), to_nodes=[TUNER])
    operate = partial(
        operations.run, config, options, command=typed_command(), engine=engine
    )
    result = run_with_view(operate)
    record = result.facts
    if result.exit_code or not isinstance(record, dict):
        return result
    run_dir = workspace_of(config).run_dir(record["run_id"])
    (found,) = RunData(run_dir, RunRecord.load(run_dir)).documents("trials")
    applied = found["trials"][0]["values"] if apply else {}
    if apply:
        write_values(Path.cwd() / file, applied)
    facts = {**record, "trials": found["trials"], "applied": applied}
    return Result(facts, partial(_print_best, found, file, apply))


def _print_best(found: Mapping[str, Any], file: str, is_applied: bool) -> None:
    best, console = found["trials"][0], make_console()
    reached = f"{found['objective']} {formats.number(best['objective'])}"
    which = f"trial {best['number']} of {len(found['trials'])}"
    say(console, f"{which} is the best: {reached}", "green")
    for key, value in best["values"].items():
        say(console, f"  {key}: {formats.setting(value)}")
    told = f"written into {file}" if is_applied else f"--apply writes them into {file}"
    say(console, told)
