"""Where a pipeline reads its stored inputs and writes what it makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.config import Config
from sluice.workspace import Workspace


@dataclass(frozen=True)
class Places:
    """The locations that differ between a laptop and a cloud project.

    Attributes:
      pipeline_root: TFX's folder for artifacts, a path or a ``gs://`` URI.
      metadata_db: SQLite file of ML Metadata; None where the service keeps it.
      inputs_dir: content-addressed copies of the files that the config names.
      serving_dir: where versions of the model go.
    """

    pipeline_root: str
    metadata_db: Path | None
    inputs_dir: Path
    serving_dir: str


def local_places(config: Config, workspace: Workspace) -> Places:
    """Returns the places in a workspace, with the config's own serving directory."""
    return Places(
        pipeline_root=str(workspace.artifacts),
        metadata_db=workspace.metadata_db,
        inputs_dir=workspace.inputs,
        serving_dir=str(config.serving_dir or workspace.serving),
    )
