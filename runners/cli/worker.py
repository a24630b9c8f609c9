"""``sluice worker NAME``: trains as a worker of a run on another machine."""

from __future__ import annotations

from functools import partial

import click

from runners.cli.echo import EchoObserver, echo
from runners.cli.options import Result, verb


@verb()
@click.argument("name")
@click.option(
    "run_id",
    "--run",
    metavar="ID",
    help="The run; default: the one in progress, or the next.",
)
def command(name: str, run_id: str | None) -> Result:
    """Train as a worker of a run of NAME that another machine has started.

    TF_CONFIG, Slurm or an indexed Job says which one. The workspace must be shared. The
    worker ends when the training does.
    """
    from runners.operations.worker import work

    done = work(name, run_id, observer=EchoObserver())
    said = "has trained" if done["trained"] else "there was nothing to train"
    line = "interrupted" if done["exit_code"] else f"{done['task']}: {said}"
    return Result(done, partial(echo, line), exit_code=done["exit_code"])
