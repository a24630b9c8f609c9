"""Operation: searches for values, and writes the best into the config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from pipeline.config.tune import write_values
from pipeline.graph.node_registry import TUNER
from reports.read_run import RunData
from runners.engine import Engine, Observer
from runners.operations.find_run import workspace_of
from runners.operations.run import run
from sluice.errors import UsageError
from sluice.machine_resources import usable_cores
from sluice.record.run_record import RunOptions, RunRecord


@dataclass(frozen=True)
class Tuned:
    """A search.

    Attributes:
      record: of its run.
      trials: the document of the search, the best trial first; None if it has failed.
      applied: the values that were written into the config, by key.
    """

    record: RunRecord
    trials: dict[str, Any] | None
    applied: dict[str, Any]


def tune(
    config: Config,
    *,
    is_applied: bool = False,
    command: str = "runners.operations.tune",
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> Tuned:
    """Runs a pipeline up to the Tuner, and reads what it has found.

    Args:
      config: of the pipeline.
      is_applied: whether the best values are written into the config.
      command: the command line or the caller, for the record.
      observer: of the run.
      engine: None for processes of this machine.

    Raises:
      UsageError: there is nothing to tune, or a key is set where it cannot be written;
        else as ``run``.
    """
    file = config.origin.file
    if config.tune is None:
        what = "there is nothing to tune: the config has no section 'tune'"
        raise UsageError(what, where=file)
    for key in config.tune.space if is_applied else ():
        place = config.origin.location(tuple(key.split(".")))
        if not place.startswith(file):
            what = f"--apply writes {file}, but {key} is set elsewhere"
            raise UsageError(what, where=place)
    options = RunOptions(workers=usable_cores(), to_nodes=[TUNER])
    config = config.model_copy(update={"retrain": None})  # A search needs no reason.
    record = run(config, options, command=command, observer=observer, engine=engine)
    if record.exit_code:
        return Tuned(record, None, {})
    run_dir = workspace_of(config).run_dir(record.run_id)
    (trials,) = RunData(run_dir, record).documents("trials")
    applied = trials["trials"][0]["values"] if is_applied else {}
    if is_applied:
        write_values(Path.cwd() / file, applied)
    return Tuned(record, trials, applied)
