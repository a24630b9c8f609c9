"""ML Metadata of a pipeline as plain values that can be traversed.

It holds the inputs and outputs of all runs, for ``gc`` and ``lineage``.
"""

from __future__ import annotations

from collections import defaultdict
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
      run_ids: the runs that it belongs to, usually one.
      state: ML Metadata's, in lower case.
      started_at: UTC, ISO 8601.
      ended_at: its last update, likewise.
      properties: as an artifact's.
      inputs: artifact ids by input.
      outputs: artifact ids by output; those of a cached execution were made by another.
      resolved: artifact ids that a resolver found.
    """

    id: int
    node: str
    kind: str
    run_ids: tuple[str, ...]
    state: str
    started_at: str
    ended_at: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    inputs: Links = field(default_factory=dict)
    outputs: Links = field(default_factory=dict)
    resolved: Links = field(default_factory=dict)

    @property
    def run_id(self) -> str | None:
        """The first run that it belongs to."""
        return min(self.run_ids, default=None)

    @property
    def succeeded(self) -> bool:
        """Whether it succeeded or was cached."""
        return self.state in ("complete", "cached")

    @property
    def finished(self) -> bool:
        """Whether it has ended at all."""
        return self.state not in ("new", "running", "unknown")

    def touched(self) -> set[int]:
        """Returns the ids of all its inputs, outputs and resolved artifacts."""
        links = (self.inputs, self.outputs, self.resolved)
        return {item for link in links for items in link.values() for item in items}


@dataclass(frozen=True)
class MetadataGraph:
    """All artifacts and executions, by id."""

    artifacts: Mapping[int, Artifact] = field(default_factory=dict)
    executions: Mapping[int, Execution] = field(default_factory=dict)

    @cached_property
    def run_ids(self) -> frozenset[str]:
        """The runs that have an execution."""
        return frozenset(
            run_id for item in self.executions.values() for run_id in item.run_ids
        )

    def executions_of(self, run_ids: Iterable[str]) -> list[Execution]:
        """Returns the executions of some runs, oldest first."""
        wanted = set(run_ids)
        return [item for item in self._by_age if not wanted.isdisjoint(item.run_ids)]

    def producer(self, artifact_id: int) -> Execution | None:
        """Returns the execution that made an artifact; None if there is none.

        It is the first: executions that took it from the cache are later.
        """
        return next(iter(self._writers[artifact_id]), None)

    def writers(self, artifact_id: int) -> list[Execution]:
        """Returns the execution that made an artifact and those that reused it."""
        return list(self._writers[artifact_id])

    def readers(self, artifact_id: int) -> list[Execution]:
        """Returns the executions that had an artifact as an input, oldest first."""
        return list(self._readers[artifact_id])

    def name_of(self, artifact_id: int) -> str:
        """Returns ``Node.output`` of an artifact, its type if no node made it."""
        execution = self.producer(artifact_id)
        if execution is not None:
            for key, artifacts in execution.outputs.items():
                if artifact_id in artifacts:
                    return f"{execution.node}.{key}"
        return self.artifacts[artifact_id].type

    def upstream(self, artifact_ids: Iterable[int]) -> tuple[set[int], set[int]]:
        """Returns the upstream lineage of some artifacts.

        Returns:
          The ids of the artifacts, these included, and of the executions that made
          them.
        """
        artifacts: set[int] = set()
        executions: set[int] = set()
        waiting = [item for item in artifact_ids if item in self.artifacts]
        while waiting:
            artifact_id = waiting.pop()
            if artifact_id in artifacts:
                continue
            artifacts.add(artifact_id)
            execution = self.producer(artifact_id)
            if execution is not None:
                executions.add(execution.id)
                waiting.extend(
                    item for items in execution.inputs.values() for item in items
                )
        return artifacts, executions

    @cached_property
    def _by_age(self) -> list[Execution]:
        return [self.executions[key] for key in sorted(self.executions)]

    @cached_property
    def _writers(self) -> Mapping[int, list[Execution]]:
        return self._index("outputs")

    @cached_property
    def _readers(self) -> Mapping[int, list[Execution]]:
        return self._index("inputs")

    def _index(self, links: str) -> Mapping[int, list[Execution]]:
        index: dict[int, list[Execution]] = defaultdict(list)
        for execution in self._by_age:
            for artifacts in getattr(execution, links).values():
                for artifact_id in artifacts:
                    index[artifact_id].append(execution)
        return index
