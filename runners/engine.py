"""Engine and observer protocols: how operations execute a plan.

An engine executes a plan wherever it can: in processes of this machine, in a service,
or in a test's memory. Operations, the record and the terminal know nothing else of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from components.tfrecord_gen.spans.span_choice import SpanChoice
    from sluice.record.events import Event
    from sluice.record.run_record import RunRecord
    from sluice.retries import Retries

_MB = 1_000_000
_MEMORY_KEY = "memory_mb"


class Observer:
    """Follows an operation; every method does nothing unless it is overridden."""

    def on_event(self, event: Event, record: RunRecord) -> None:
        """Takes an event that the record has taken in already.

        The run's end is told as well; notes may follow it.
        """

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        """Takes what a running node says of itself, such as the epoch it is in."""

    def on_tick(self) -> None:
        """Is called a few times per second while nodes run."""

    def on_warning(self, text: str) -> None:
        """Takes what may be wrong but stops nothing."""

    def on_note(self, text: str) -> None:
        """Takes what is worth knowing, such as whom a run waits for."""

    def on_command(self, purpose: str, command: str) -> None:
        """Takes a command to type next, such as the one to ``predict`` with."""


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
    """A run that has begun and is about to be executed, or to go on.

    Attributes:
      run_dir: of the run; its name is the run's id. The config and the journal's first
        event lie there.
      workers: how many nodes run at the same time, at most.
      project_root: of a pipeline of ours; None for one built elsewhere.
      workspace: of a pipeline of ours; None for one whose IR lies in ``run_dir``.
      use_cache: whether outputs of earlier runs may stand for a node.
      forced: nodes that run even so.
      from_nodes: only what follows from these runs; empty for all.
      to_nodes: only what leads to these runs; empty for all.
      base_run_id: the run that the rest is taken from; None for the newest that fits.
      retries: of transient failures.
      memory: how much of it each node may use.
      accept_data: why a person lets the data pass this once, whatever is wrong with it.
      resumed: whether the run was executed before, as far as it went.
      spans: the choice, which the engine stores in ``run_dir``; None leaves it to the
        nodes.
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
    """What an engine can do beside running a plan to its end.

    Attributes:
      resume: goes on with a run that was stopped; ``Plan.resumed`` may be set.
      logs: writes ``logs/<node>.log`` into the run's folder.
      cancel: stops at SIGINT and SIGTERM, and says so in the record.
      progress: calls ``Observer.on_progress``.
    """

    resume: bool = False
    logs: bool = False
    cancel: bool = False
    progress: bool = False


class Engine(Protocol):
    """Executes plans.

    Attributes:
      capabilities: what it can do beside that.
    """

    capabilities: Capabilities

    def prewarm(self, root: Path) -> None:
        """Begins what takes long, such as an import, before there is a plan.

        Args:
          root: of the project.
        """

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Executes a plan, and closes the record of its run.

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
