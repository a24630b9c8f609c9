"""What is to be run, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from runners.local.job_environment import JobEnvironment
from runners.local.limit_memory import MemoryLimits
from sluice.retries import Retries


@dataclass(frozen=True)
class Plan:
    """A run that is about to begin or to go on.

    Attributes:
      run_dir: of the run; its name is the run's id.
      job_environment: of every process.
      workers: how many nodes run at the same time, at most.
      workspace: of a pipeline of ours, whose config lies in ``run_dir``; None for one
        whose IR lies there.
      use_cache: whether outputs of earlier runs may stand for a node.
      forced: nodes that run even so.
      from_nodes: only what follows from these runs; empty for all.
      to_nodes: only what leads to these runs; empty for all.
      base_run_id: the run that the rest is taken from; None for the newest that fits.
      retries: of transient failures.
      memory: how much of it each node may use.
      accept_data: why a person lets the data pass this once, whatever is wrong with it.
      resumed: whether the run was begun before.
    """

    run_dir: Path
    job_environment: JobEnvironment
    workers: int
    workspace: Path | None = None
    use_cache: bool = True
    forced: tuple[str, ...] = ()
    from_nodes: tuple[str, ...] = ()
    to_nodes: tuple[str, ...] = ()
    base_run_id: str | None = None
    retries: Retries = field(default_factory=Retries)
    memory: MemoryLimits = field(default_factory=MemoryLimits)
    accept_data: str | None = None
    resumed: bool = False
