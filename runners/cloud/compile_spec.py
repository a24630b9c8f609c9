"""Compiles a pipeline for a service; TFX is imported for it, in this process.

The result is KFP's pipeline job as a dictionary, always of pipeline spec 2.1: in 2.0 a
span that TFX's driver resolves never reaches the executor. Nothing remote is read or
written; who submits the job copies ``uploads`` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.config.config import Config
from runners.cloud.check_cloud import check_cloud
from runners.cloud.cloud_locations import Upload
from runners.cloud.image import check_modules
from runners.local.explain_failure import as_error, explain_failure
from sluice.compat import hidden_native_logs


@dataclass(frozen=True)
class CompiledSpec:
    """A compiled pipeline.

    Attributes:
      job: KFP's ``PipelineJob`` with its ``pipelineSpec``, as JSON values.
      uploads: what to copy into the bucket before the job runs.
      warnings: about the config.
    """

    job: dict[str, Any]
    uploads: tuple[Upload, ...]
    warnings: tuple[str, ...] = ()


def compile_checked(config: Config, *, scheduled: bool = False) -> CompiledSpec:
    """Compiles a pipeline for the engine of its ``cloud`` section.

    Args:
      config: a validated config, whose code is importable.
      scheduled: for a schedule: the first task selects the spans when it runs, and the
        others are skipped if there is nothing new. Otherwise the spans are a parameter.

    Raises:
      ConfigError: the config is wrong for the service, or its image would lack code.
      UsageError: the pipeline cannot be created, or not be compiled.
      NodeError: the user's code failed otherwise.
    """
    warnings = check_cloud(config)
    check_modules(config)
    try:
        with hidden_native_logs():
            from pipeline.graph.check_objects import check_objects
            from runners.cloud.compile_job import compile_pipeline

            check_objects(config)
            job, uploads = compile_pipeline(config, scheduled=scheduled)
    except Exception as error:
        raise as_error(explain_failure("the pipeline", error)) from error
    return CompiledSpec(job, tuple(uploads), tuple(warnings))
