"""Engine and observer protocols: how operations run a pipeline.

The local engine runs nodes in processes of this machine, a test's in its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sluice.project import own_root

if TYPE_CHECKING:
    from components.tfrecord_gen.input_files import SpanChoice
    from sluice.record.parts import NodeRecord
    from sluice.record.run_record import RunRecord


class Observer:
    """Callbacks of an operation; each does nothing unless it is overridden."""

    def on_begin(self, record: RunRecord) -> None:
        """Called when a run begins or is resumed, and when its nodes are known."""

    def on_node(self, record: RunRecord, node: NodeRecord) -> None:
        """Called when a node has started or ended; the record has been saved."""

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        """Called with the progress of a running node, such as its epoch."""

    def on_tick(self) -> None:
        """Called a few times per second while nodes run."""

    def on_warning(self, text: str) -> None:
        """Called with a possible mistake that does not stop the operation."""

    def on_note(self, text: str) -> None:
        """Called with information, such as the process that a run waits for."""


_IR_FILE = "pipeline.pb"


@dataclass(frozen=True)
class Graph:
    """Where the compiled pipeline of a run is, and what it belongs to.

    Attributes:
      run_dir: the run's folder, which holds the config and the IR.
      project_root: of a pipeline with a config; None for one that a script has built.
      workspace: likewise.
    """

    run_dir: Path
    project_root: Path | None = None
    workspace: Path | None = None

    @property
    def ir_file(self) -> Path:
        """The compiled pipeline, a proto of TFX."""
        return self.run_dir / _IR_FILE

    def read_ir(self) -> Any:
        """Returns the compiled pipeline."""
        from tfx.proto.orchestration import pipeline_pb2

        ir = pipeline_pb2.Pipeline()
        ir.ParseFromString(self.ir_file.read_bytes())
        return ir

    @property
    def roots(self) -> list[Path]:
        """The directories whose modules count as the pipeline's own code."""
        own = [self.project_root] if self.project_root else []
        return list(dict.fromkeys([own_root(), *own]))

    @property
    def config_file(self) -> Path:
        """The stored config; a script's pipeline has none."""
        return self.run_dir / "config.json"

    def custom_nodes(self) -> Mapping[str, Any]:
        """Returns the nodes that the config adds."""
        if not self.config_file.exists():
            return {}
        from pipeline.config.serialize import custom_nodes

        return custom_nodes(self.config_file)


@dataclass(frozen=True)
class Plan:
    """A run to execute or to resume; its record has begun and has the options.

    Attributes:
      run_dir: of the run; its name is the run's id. Contains the config and the record.
      project_root: of the pipeline.
      workspace: of the pipeline.
      spans: the spans and files of the run.
      resumed: whether the run was executed before and is resumed.
    """

    run_dir: Path
    project_root: Path
    workspace: Path
    spans: SpanChoice
    resumed: bool = False


class Engine(Protocol):
    """Executes plans."""

    def run(self, plan: Plan, record: RunRecord, observer: Observer) -> None:
        """Executes a plan and ends its record, also where nodes have failed.

        Raises:
          WorkspaceError: the record cannot be written, such as on a full disk.
        """
