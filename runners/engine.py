"""Engine and observer protocols: how operations execute a plan.

An engine executes a plan in processes of this machine, in a service, or in the memory
of a test. Operations, the record and the terminal depend on these protocols alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from components.tfrecord_gen.spans.span_choice import SpanChoice
    from sluice.record.events import Event
    from sluice.record.run_record import NodeRecord, RunRecord
    from sluice.retries import Retries

_MB = 1_000_000
_MEMORY_KEY = "memory_mb"


class Observer:
    """Callbacks of an operation; each does nothing unless it is overridden."""

    def on_event(self, event: Event, record: RunRecord) -> None:
        """Called with each event, after the record has been updated with it.

        Notes may follow the event that ends the run.
        """

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        """Called with the progress of a running node, such as its epoch."""

    def on_tick(self) -> None:
        """Called a few times per second while nodes run."""

    def on_warning(self, text: str) -> None:
        """Called with a possible mistake that does not stop the operation."""

    def on_note(self, text: str) -> None:
        """Called with information, such as the process that a run waits for."""

    def on_command(self, purpose: str, command: str) -> None:
        """Called with a command to type next, such as the one to ``predict`` with."""


@dataclass(frozen=True)
class MemoryLimits:
    """How much memory each node may use, in MB; None for what the machine has.

    Attributes:
      default_mb: of nodes that are not named.
      nodes_mb: by node id.
      in_config: whether they are the config's ``memory_mb``; errors name the setting.
    """

    default_mb: int | None = None
    nodes_mb: Mapping[str, int | None] = field(default_factory=dict)
    in_config: bool = False

    def of(self, node_id: str) -> tuple[int, str] | None:
        """Returns a node's limit in bytes and the setting that it comes from."""
        named = node_id in self.nodes_mb
        limit_mb = self.nodes_mb[node_id] if named else self.default_mb
        if limit_mb is None:
            return None
        if self.in_config:
            of_node, of_all = f"{_MEMORY_KEY}.nodes.{node_id}", f"{_MEMORY_KEY}.default"
        else:
            name = type(self).__name__
            of_node, of_all = f"{name}.nodes_mb[{node_id!r}]", f"{name}.default_mb"
        return limit_mb * _MB, of_node if named else of_all


def _no_retries() -> Retries:
    # pydantic, whose import would delay the one of TFX in a process beside this one.
    from sluice.retries import Retries

    return Retries()


@dataclass(frozen=True)
class Plan:
    """Run to execute or to resume; its record has begun.

    Attributes:
      run_dir: of the run; its name is the run's id. Contains the config and the
        journal with its first event.
      workers: number of nodes to run in parallel, at most.
      project_root: of a pipeline with a config; None for one built elsewhere.
      workspace: of a pipeline with a config; None for one whose IR is in ``run_dir``.
      use_cache: whether nodes may take their outputs from the cache.
      forced: nodes that run even if they are cached.
      from_nodes: run these and what is downstream of them; empty for all.
      to_nodes: run these and what is upstream of them; empty for all.
      base_run_id: the run whose outputs stand for the nodes left out; None for the
        newest that has them.
      retries: of transient failures.
      memory: limits per node.
      accept_data: the reason for overriding the data gate; None to keep it.
      resumed: whether the run was executed before and is resumed.
      spans: the spans and files of the run, which the engine stores in ``run_dir``;
        None lets the drivers of the nodes choose.
      locks: descriptors that each process of the run holds open until it ends.
    """

    run_dir: Path
    workers: int
    project_root: Path | None = None
    workspace: Path | None = None
    use_cache: bool = True
    forced: tuple[str, ...] = ()
    from_nodes: tuple[str, ...] = ()
    to_nodes: tuple[str, ...] = ()
    base_run_id: str | None = None
    retries: Retries = field(default_factory=_no_retries)
    memory: MemoryLimits = field(default_factory=MemoryLimits)
    accept_data: str | None = None
    resumed: bool = False
    spans: SpanChoice | None = None
    locks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Capabilities:
    """Optional features of an engine.

    Attributes:
      resume: executes plans with ``Plan.resumed``.
      run_node: runs the nodes of a run one by one; it is a ``NodeEngine``.
      cancel: stops at SIGINT and SIGTERM, and records the interruption.
      this_machine: runs all nodes here, with this machine's devices and environment.
      detached: ``run`` may return while the run goes on elsewhere; its record is then
        open.
    """

    resume: bool = False
    run_node: bool = False
    cancel: bool = False
    this_machine: bool = False
    detached: bool = False


class Engine(Protocol):
    """Executes plans."""

    capabilities: Capabilities

    def prewarm(self, root: Path) -> None:
        """Starts slow work, such as an import, before there is a plan.

        Args:
          root: of the project.
        """

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Executes a plan and closes the record of its run.

        Args:
          plan: of a run whose record has begun.
          observer: its ``on_event`` is for the engine's ``Recorder``, which calls it.

        Returns:
          The record, with a status and an exit code also where nodes have failed.

        Raises:
          WorkspaceError: the record cannot be written, such as on a full disk, or the
            workspace was deleted.
        """
        ...


class NodeEngine(Engine, Protocol):
    """Engine that runs the nodes of a run one by one (``Capabilities.run_node``).

    Each call may come from another process; what they share is in ``Plan.run_dir``.
    """

    def prepare(self, plan: Plan, observer: Observer) -> RunRecord:
        """Compiles the graph of a run; runs no node.

        Returns:
          The record; closed if the graph cannot be run.
        """
        ...

    def run_node(self, plan: Plan, node: str, observer: Observer) -> NodeRecord | None:
        """Runs one node of a prepared run, and records the nodes that it stops.

        Returns:
          The node's record; None if an upstream node has not finished.

        Raises:
          NodeError: the process that starts the nodes has ended.
        """
        ...

    def end_run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Closes the record of a prepared run; as failed if nodes are left to run."""
        ...
