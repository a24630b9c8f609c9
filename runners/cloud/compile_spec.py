"""Compiles a pipeline for a service, in a process of its own that imports TFX.

The result is KFP's pipeline job as a dictionary, always of pipeline spec 2.1: in 2.0 a
span that TFX's driver resolves never reaches the executor. Nothing remote is read or
written; who submits the job copies ``uploads`` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from runners.cloud.beam_args import check_beam
from runners.cloud.cloud_locations import Upload
from runners.cloud.lint.finding import Finding, refuse
from runners.cloud.push_destinations import check_push
from runners.cloud.trainer_job import check_trainer
from runners.local.processes.job import Job
from runners.local.query_job import run_query_job, temporary_run_dir
from sluice.errors import ConfigError

# Name of the job and of its result.
COMPILE = ".compile"


@dataclass(frozen=True)
class CompiledSpec:
    """A compiled pipeline.

    Attributes:
      job: KFP's ``PipelineJob`` with its ``pipelineSpec``, as JSON values.
      uploads: what to copy into the bucket before the job runs.
      warnings: of the linter about the pipeline.
    """

    job: dict[str, Any]
    uploads: tuple[Upload, ...]
    warnings: tuple[Finding, ...] = ()


def compile_config(config: Config, *, scheduled: bool = False) -> CompiledSpec:
    """Compiles a pipeline for the engine of its ``cloud`` section.

    Args:
      config: a validated config.
      scheduled: for a schedule: the first task selects the spans when it runs, and the
        others are skipped if there is nothing new. Otherwise the spans are a parameter.

    Raises:
      LintError: TFX or the service refuses nodes of the pipeline.
      ConfigError: the config has no ``cloud`` section, or one that cannot be compiled.
      UsageError: the pipeline cannot be created.
      NodeError: the process failed otherwise.
    """
    check_cloud(config)
    with temporary_run_dir(config) as run_dir:
        job = Job(
            function="runners.cloud.compile_job:compile_job",
            arguments={"run_dir": str(run_dir), "scheduled": scheduled},
            log=str(run_dir / "logs" / "compile.log"),
        )
        result = run_query_job(job, run_dir, COMPILE, cwd=config.root)
    found = tuple(Finding(**item) for item in result["findings"])
    refuse(found, config)
    uploads = tuple(
        Upload(Path(path), uri, content) for path, uri, content in result["uploads"]
    )
    return CompiledSpec(result["job"], uploads, warnings=found)


def check_cloud(config: Config) -> None:
    """Raises a ``ConfigError`` for a config that cannot be compiled for its engine."""
    if config.cloud is None:
        raise ConfigError(
            "the config has no section cloud",
            where=config.origin.file,
            expected="where a service runs the pipeline",
            hint="--profile vertex or --profile kubeflow, with --set "
            "cloud.root=gs://BUCKET/FOLDER",
        )
    _ = config.cloud_dir
    check_trainer(config)
    check_beam(config)
    check_push(config)
