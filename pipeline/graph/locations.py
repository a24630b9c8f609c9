"""Where a pipeline's files are: in a workspace, or in the bucket of a service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.config.config import Config
from pipeline.graph.beam_arguments import beam_args
from sluice.storage import digest
from sluice.storage.local_copy import copy_missing
from sluice.workspace import Workspace


@dataclass(frozen=True)
class Locations:
    """Locations that differ between local runs and cloud services.

    Attributes:
      pipeline_root: TFX's folder for artifacts, a path or a ``gs://`` URI.
      metadata_db: SQLite file of ML Metadata; None where the service keeps it.
      inputs_dir: content-addressed copies of files such as the schema; None in a
        bucket.
      serving_dir: directory of the model's versions.
      baseline_store: accepted data, a directory or a ``gs://`` URI.
      beam_args: options of the Beam pipelines inside the nodes.
      copies_inputs: false for commands that only read.
      checkpoints: ``gs://`` URI for checkpoints of trainings; None where the runner
        chooses a directory for each.
      workspace_id: identifies the workspace to the serving directory; None without
        one.
    """

    pipeline_root: str
    metadata_db: Path | None
    inputs_dir: Path | None
    serving_dir: str
    baseline_store: str
    beam_args: tuple[str, ...] = ()
    copies_inputs: bool = True
    checkpoints: str | None = None
    workspace_id: str | None = None

    @property
    def is_service(self) -> bool:
        """Whether a cloud service runs the pipeline: it does not run our drivers."""
        return self.metadata_db is None

    def store_input(self, path: Path, kind: str) -> str:
        """Copies a file or directory to a path that contains the digest of its content.

        TFX's cache compares the path of a file, not its content. With the digest in
        the path, an edited file has another path, and a touched or moved one has not.

        Returns:
          ``<inputs_dir>/<kind>/<sha256>/<file name>``, written if not there yet.

        Raises:
          OSError: it cannot be read, or the directory cannot be written.
        """
        assert self.inputs_dir is not None
        target = str(self.inputs_dir / kind / digest.of_path(path) / path.name)
        if self.copies_inputs:
            copy_missing(path, target)
        return target


def local_locations(config: Config, workspace: Workspace) -> Locations:
    """Returns the locations in a workspace, with the config's own serving directory."""
    return Locations(
        pipeline_root=str(workspace.artifacts),
        metadata_db=workspace.metadata_db,
        inputs_dir=workspace.inputs,
        serving_dir=str(config.serving_dir or workspace.serving),
        baseline_store=str(workspace.root / "state" / "accepted"),
        beam_args=beam_args(config.beam),
        workspace_id=workspace.id,
    )
