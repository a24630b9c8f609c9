"""Locations in a bucket, and parameters and files of a job that is about to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from components.baseline_model.blessed_models import pin_baseline
from components.tfrecord_gen.input_files import SPANS_FILE, SpanChoice, Window
from pipeline.config.config import Config
from pipeline.graph.locations import Locations
from pipeline.graph.node_registry import INGESTION, SERVING_INGESTION
from sluice.errors import RemoteError, UsageError
from sluice.node_kinds import NEWEST_INGESTION
from sluice.storage import digest
from sluice.storage.local_copy import copy_missing
from sluice.storage.storage import is_remote, storage_for

# Names of the parameters that hold the spans and files of each ingestion.
SPANS_OF = {
    INGESTION: "spans",
    SERVING_INGESTION: "serving_spans",
    NEWEST_INGESTION: "spans",
}
ACCEPT_DATA, BASELINE = "accept_data", "baseline"
TRAINER_CONFIG = "trainer_config"


def job_parameters(
    job: Mapping[str, Any],
    serving_dir: str,
    inputs_uri: str,
    choice: SpanChoice,
    accept_data: str | None = None,
) -> dict[str, str]:
    """Returns the values of a job's parameters; those with a default are left out.

    Args:
      job: compiled from the config.
      serving_dir: of the model's versions.
      inputs_uri: where the list of the run's files is written, under its digest. It
        has their sizes and generations, which are so a part of the cache key.
      choice: the spans and files to which the run is pinned.
      accept_data: the reason for overriding the data gate once.
    """
    inputs = job["pipelineSpec"]["root"].get("inputDefinitions", {})
    declared = inputs.get("parameters", {})
    values = {
        name: _store(window, inputs_uri)
        for name, window in zip(
            dict.fromkeys(SPANS_OF.values()), choice.windows.values(), strict=False
        )
        if name in declared
    }
    if accept_data:
        values[ACCEPT_DATA] = accept_data
    if BASELINE in declared:
        values[BASELINE] = pin_baseline(serving_dir)
    return values


def _store(window: Window, inputs_uri: str) -> str:
    """Writes the list of an ingestion's files; returns its address."""
    # What was skipped is in the run's record, and changes none of its results.
    content = SpanChoice(replace(window, skipped=())).to_json()
    folder = f"{inputs_uri}/spans/{digest.of_bytes(content)}"
    storage = storage_for(folder)
    storage.make_folder(folder)
    storage.write_atomically(f"{folder}/{SPANS_FILE}", content)
    return f"{folder}/{SPANS_FILE}"


def upload(item: Upload) -> None:
    """Copies a file or directory into the bucket, unless it is there.

    Raises:
      OSError: it cannot be written.
      UsageError: it has changed since it was compiled.
    """
    if item.digest not in (None, digest.of_path(item.path)):
        raise UsageError(
            "a file of the pipeline has changed since it was compiled",
            where=item.path,
            hint="run the same command again",
        )
    copy_missing(item.path, item.uri)


@contextmanager
def explain_storage(config: Config) -> Iterator[None]:
    """Raises ``RemoteError`` where the bucket of ``cloud.root`` cannot be used."""
    try:
        yield
    except OSError as error:
        raise RemoteError(
            "the files of the run cannot be copied into the bucket",
            where=config.cloud_dir,
            actual=error.strerror or str(error),
        ) from error


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


class CompiledJob(NamedTuple):
    """KFP's ``PipelineJob`` as JSON values, and what to copy before it runs."""

    job: dict[str, Any]
    uploads: list[Upload]


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
