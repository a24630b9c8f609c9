"""Locations in a bucket: artifacts, accepted data, content-addressed inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pipeline.config.config import Config
from pipeline.graph.arguments import Locations
from sluice.storage import digest
from sluice.storage.storage import is_remote


@dataclass(frozen=True)
class Upload:
    """A local file or directory to copy to a URI before the pipeline runs.

    Attributes:
      path: of the file or directory.
      uri: contains the digest of the content, so one that exists is complete.
      digest: of the content; None if it is not in the URI.
    """

    path: Path
    uri: str
    digest: str | None = None


@dataclass(frozen=True)
class CloudLocations(Locations):
    """Locations in a bucket; nothing is written, uploads are listed.

    Attributes:
      inputs_uri: content-addressed copies of files such as the schema.
      uploads: what ``store_input`` was given, by URI.
    """

    inputs_uri: str = ""
    uploads: dict[str, Upload] = field(default_factory=dict)

    def store_input(self, path: Path, kind: str) -> str:
        """Returns ``<inputs_uri>/<kind>/<sha256>/<name>``, and lists the upload."""
        content = digest.of_path(path)
        uri = f"{self.inputs_uri}/{kind}/{content}/{path.name}"
        self.uploads[uri] = Upload(path, uri, content)
        return uri


def cloud_locations(config: Config) -> CloudLocations:
    """Returns the locations below ``<cloud.root>/<name>``.

    Raises:
      ConfigError: ``cloud.root`` is not set.
    """
    folder, push = config.cloud_dir, config.push.serving_dir
    return CloudLocations(
        pipeline_root=f"{folder}/artifacts",
        metadata_db=None,
        inputs_dir=None,
        serving_dir=push if push and is_remote(push) else f"{folder}/serving",
        baseline_store=f"{folder}/accepted",
        checkpoints=f"{folder}/checkpoints",
        inputs_uri=f"{folder}/inputs",
    )
