"""Parameters and files of a compiled job that is about to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.baseline_model.pushed_baseline import NO_BASELINE, latest_pushed_model
from components.tfrecord_gen.spans.span_choice import SpanChoice
from pipeline.config.config import Config
from pipeline.graph.locations import Locations
from runners.cloud.cloud_locations import Upload, cloud_locations
from runners.cloud.run_parameters import run_parameters
from sluice.errors import UsageError
from sluice.storage.storage import storage_for

# Kubeflow Pipelines looks up no baseline: it is a parameter of the job.
_BASELINE = "baseline"


def job_parameters(
    job: Mapping[str, Any],
    config: Config,
    choice: SpanChoice,
    accept_data: str | None = None,
) -> dict[str, str]:
    """Returns the values of a job's parameters; those with a default are left out.

    Args:
      job: compiled from the config.
      config: the pipeline's.
      choice: its spans, to which the run is pinned.
      accept_data: the reason for overriding the data gate once.
    """
    values = run_parameters(config, choice, accept_data)
    definitions = job["pipelineSpec"]["root"].get("inputDefinitions", {})
    if _BASELINE in definitions.get("parameters", {}):
        serving_dir = cloud_locations(config).serving_dir
        values[_BASELINE] = latest_pushed_model(serving_dir) or NO_BASELINE
    return values


def upload(item: Upload) -> None:
    """Copies a file or directory into the bucket, unless it is there.

    Raises:
      OSError: it cannot be written.
      UsageError: it has changed since it was compiled.
    """
    if item.digest not in (None, Locations.digest_of(item.path)):
        raise UsageError(
            "a file of the pipeline has changed since it was compiled",
            where=item.path,
            hint="run the same command again",
        )
    storage = storage_for(item.uri)
    if item.path.is_file():
        if not storage.exists(item.uri):
            storage.write_atomically(item.uri, item.path.read_bytes())
        return
    for path in sorted(item.path.rglob("*")):
        uri = f"{item.uri}/{path.relative_to(item.path).as_posix()}"
        if path.is_file() and not storage.exists(uri):
            storage.write_atomically(uri, path.read_bytes())
