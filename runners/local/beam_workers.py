"""Where a node's Beam pipelines run: in its process, in forked ones, on an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfx.orchestration.portable.beam_executor_operator import BeamExecutorOperator
from tfx.types.standard_artifacts import Examples

from runners.local.processes import can_fork
from sluice.beam_options import ENGINE_RUNNER, LOCAL_RUNNER, PARALLEL_FROM_BYTES
from sluice.beam_runner import fork_workers
from sluice.machine_resources import usable_cores
from sluice.node_environment import node_environment
from sluice.storage.digest import files_below
from sluice.storage.storage import is_remote


def prepare_beam(operator: Any, inputs: Mapping[str, Sequence[Any]]) -> None:
    """Prepares for the pipelines of a node before its executor starts.

    Forks their workers, if they are worth it. Takes the work from the engine, if its
    examples are not worth it; the ingestion, which has none, decides by itself.

    Args:
      operator: TFX's operator of its executor.
      inputs: its input artifacts by key.
    """
    if not isinstance(operator, BeamExecutorOperator):
        return
    told = node_environment().workers
    shards = [*_shards(x for artifacts in inputs.values() for x in artifacts)]
    size = sum(shards)
    is_small = not told and size < PARALLEL_FROM_BYTES
    runners = {arg.value.string_value: arg.value for arg in operator.beam_pipeline_args}
    if ENGINE_RUNNER in runners:
        if is_small and shards:
            runners[ENGINE_RUNNER].string_value = LOCAL_RUNNER
        return
    count = int(told or min(usable_cores(), len(shards)))
    if LOCAL_RUNNER in runners and count > 1 and not is_small and can_fork():
        size_mb = round(size / 1e6)
        why = f"since its examples have {size_mb:,} MB"
        fork_workers(count, "as beam.workers says" if told else why)


def _shards(artifacts: Iterable[Any]) -> Iterable[int]:
    """Yields the sizes of the files of examples on this machine, in bytes."""
    for artifact in artifacts:
        if isinstance(artifact, Examples) and not is_remote(artifact.uri):
            yield from (file.size_bytes for file in files_below(artifact.uri))
