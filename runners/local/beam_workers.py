"""How many worker processes a node's Beam pipelines get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfx.orchestration.portable.beam_executor_operator import BeamExecutorOperator
from tfx.types.standard_artifacts import Examples

from runners.local.processes import can_fork
from sluice.beam_runner import RUNNER, fork_workers
from sluice.machine_resources import usable_cores
from sluice.node_environment import node_environment
from sluice.storage.digest import files_below
from sluice.storage.storage import is_remote

# Below, the workers' messages take longer than what they save.
_FROM_BYTES = 40_000_000


def fork_beam_workers(operator: Any, inputs: Mapping[str, Sequence[Any]]) -> None:
    """Forks the workers of a node before its executor starts, if they are worth it.

    Args:
      operator: TFX's operator of its executor.
      inputs: its input artifacts by key.
    """
    if not isinstance(operator, BeamExecutorOperator) or not can_fork():
        return
    if all(arg.value.string_value != RUNNER for arg in operator.beam_pipeline_args):
        return
    told = node_environment().workers
    shards = [*_shards(x for artifacts in inputs.values() for x in artifacts)]
    size = sum(shards)
    count = int(told or min(usable_cores(), len(shards)))
    if count < 2 or (not told and size < _FROM_BYTES):
        return
    size_mb = round(size / 1e6)
    why = "as beam.workers says" if told else f"since its examples have {size_mb:,} MB"
    fork_workers(count, why)


def _shards(artifacts: Iterable[Any]) -> Iterable[int]:
    """Yields the sizes of the files of examples on this machine, in bytes."""
    for artifact in artifacts:
        if isinstance(artifact, Examples) and not is_remote(artifact.uri):
            yield from (file.size_bytes for file in files_below(artifact.uri))
