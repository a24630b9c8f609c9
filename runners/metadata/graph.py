"""ML Metadata of a pipeline as plain values: its artifacts and executions.

It holds the inputs and outputs of all runs, for ``gc`` and ``lineage``, or a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sluice.mlmd_items import Artifact

Links = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Execution:
    """One execution of a node.

    Attributes:
      id: in ML Metadata.
      node: the node's id in the pipeline.
      kind: the component's class.
      run_id: the run that it belongs to; None if there is none.
      state: ML Metadata's, in lower case.
      started_at: UTC, ISO 8601.
      ended_at: its last update, likewise.
      properties: as an artifact's.
      inputs: artifact ids by input.
      outputs: artifact ids by output; those of a cached execution or of a resolver were
        made by another.
    """

    id: int
    node: str
    kind: str
    run_id: str | None
    state: str
    started_at: str
    ended_at: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    inputs: Links = field(default_factory=dict)
    outputs: Links = field(default_factory=dict)


@dataclass(frozen=True)
class MetadataGraph:
    """Artifacts and executions, by id."""

    artifacts: Mapping[int, Artifact] = field(default_factory=dict)
    executions: Mapping[int, Execution] = field(default_factory=dict)

    def executions_of(self, run_ids: Iterable[str]) -> list[Execution]:
        """Returns the executions of some runs, oldest first."""
        wanted = set(run_ids)
        by_age = sorted(self.executions.items())
        return [item for _, item in by_age if item.run_id in wanted]

    def producer(self, artifact_id: int) -> Execution | None:
        """Returns the execution that made an artifact; None if there is none.

        It is the first: executions that found it, or took it from the cache, are later.
        """
        return self._producers.get(artifact_id)

    def name_of(self, artifact_id: int) -> str:
        """Returns ``Node.output`` of an artifact, its type if no node made it."""
        execution = self.producer(artifact_id)
        if execution is not None:
            for key, artifacts in execution.outputs.items():
                if artifact_id in artifacts:
                    return f"{execution.node}.{key}"
        return self.artifacts[artifact_id].type

    def by_key(self, links: Links) -> dict[str, list[Artifact]]:
        """Returns the artifacts that are linked to an execution."""
        return {key: [self.artifacts[x] for x in ids] for key, ids in links.items()}

    def upstream(self, artifact_ids: Iterable[int]) -> tuple[set[int], set[int]]:
        """Returns the ids of some artifacts, those upstream, and their executions."""
        artifacts: set[int] = set()
        executions: set[int] = set()
        waiting = {*artifact_ids} & self.artifacts.keys()
        while waiting:
            artifacts |= waiting
            makers = [made for item in waiting if (made := self.producer(item))]
            executions.update(maker.id for maker in makers)
            waiting = ids_in(*(maker.inputs for maker in makers)) - artifacts
        return artifacts, executions

    @cached_property
    def _producers(self) -> Mapping[int, Execution]:
        found: dict[int, Execution] = {}
        for _, execution in sorted(self.executions.items(), reverse=True):
            found.update(dict.fromkeys(ids_in(execution.outputs), execution))
        return found


def ids_in(*links: Links) -> set[int]:
    """Returns the ids of all artifacts in some links."""
    return {item for link in links for items in link.values() for item in items}
