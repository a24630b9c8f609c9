"""The compiled graph of a run, readable without TFX (``graph.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from pydantic import TypeAdapter, ValidationError

from sluice.errors import UsageError
from sluice.graph import Action
from sluice.storage import atomic

GRAPH_FILE = "graph.json"
IR_FILE = "pipeline.pb"


@dataclass(frozen=True)
class PlannedNode:
    """One node, and what the run does with it.

    Attributes:
      id: of the node.
      kind: the component's class.
      upstream: the nodes that it waits for.
      contexts: type and name of its contexts in ML Metadata, the run's among them.
      gate: whether a failure of it blocks the nodes after it.
      resolver: whether it only looks up artifacts.
      judges_data: whether its verdict is on the data, which a person may override.
      pushes: whether it pushes the model to the serving directory.
      action: ``reuse`` takes the outputs of an earlier run, ``skip`` leaves it out.
      needs: the possible producers of each required input.
      optional: the upstream nodes whose outputs are optional inputs.
      when_skipped: the reason if TFX skips it.
    """

    id: str
    kind: str
    upstream: tuple[str, ...]
    contexts: tuple[tuple[str, str], ...]
    gate: bool
    resolver: bool
    judges_data: bool = False
    pushes: bool = False
    action: Action = "run"
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    when_skipped: str = ""


@dataclass(frozen=True)
class GraphFile:
    """The nodes in topological order, and where their metadata is.

    Attributes:
      pipeline: the pipeline's name.
      nodes: in topological order.
      connection: ML Metadata's ``ConnectionConfig``, serialized, in hexadecimal.
      base_run_id: the run whose outputs are reused; None where none are.
      has_history: whether anything was ever executed with this metadata.
    """

    pipeline: str
    nodes: tuple[PlannedNode, ...]
    connection: str
    base_run_id: str | None = None
    has_history: bool = False

    def save(self, run_dir: Path) -> None:
        """Writes the file atomically; its existence means that it is complete."""
        atomic.write_json(run_dir / GRAPH_FILE, asdict(self))

    @classmethod
    def load(cls, run_dir: Path) -> GraphFile | None:
        """Reads what ``save`` wrote, None if there is none.

        Raises:
          UsageError: another version of Sluice wrote it in another format.
        """
        path = run_dir / GRAPH_FILE
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise UsageError(
                f"run {run_dir.name} was started by another version of Sluice",
                where=path,
                hint="start a new run; in a script, with another run_id",
            ) from error

    def node(self, node_id: str) -> PlannedNode:
        """Returns a node by its id; KeyError if the graph has none."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def before(self, node_id: str) -> list[str]:
        """Returns all upstream nodes of a node, direct or not."""
        found: list[str] = []
        left = list(self.node(node_id).upstream)
        while left:
            name = left.pop()
            if name not in found:
                found.append(name)
                left += self.node(name).upstream
        return found

    def connection_config(self) -> Any:
        """Returns ML Metadata's ``ConnectionConfig``."""
        config = metadata_store_pb2.ConnectionConfig()
        config.ParseFromString(bytes.fromhex(self.connection))
        return config
