"""The compiled pipeline of a run, as the processes of its nodes read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.project import own_root

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
