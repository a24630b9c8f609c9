"""Compiles a pipeline for a service and lints it, in a process that imports TFX.

The result is KFP's pipeline job as a dictionary, always of pipeline spec 2.1: in 2.0 a
span that TFX's driver resolves never reaches the executor. Nothing remote is read or
written; who submits the job copies ``uploads`` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from runners.cloud.cloud_locations import Upload
from runners.cloud.image import image_of, modules_outside
from runners.cloud.lint.finding import Finding, error, has_errors, refuse
from runners.cloud.lint.lint_config import lint_config
from runners.cloud.lint.lint_spec import lint_spec
from runners.cloud.spec import read_spec
from runners.local.processes.job import Job
from runners.local.query_job import run_query_job, temporary_run_dir
from sluice.errors import ConfigError, UsageError, bounded

# Name of the job and of its result.
COMPILE = ".compile"
# Stand for missing keys of ``cloud``, so that the rest can be linted.
_ABSENT = {"root": "gs://bucket/folder", "image": "registry.example/image:tag"}


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


def compile_checked(config: Config, *, scheduled: bool = False) -> CompiledSpec:
    """Compiles a pipeline that the service can run.

    Args:
      config: a validated config.
      scheduled: see ``compile_config``.

    Returns:
      The compiled pipeline, with all warnings of the linter.

    Raises:
      LintError: the service would refuse the pipeline, or a run there would fail; has
        all findings.
      ConfigError: the config has no ``cloud`` section.
      UsageError: the pipeline cannot be created, on this machine either.
      NodeError: the process failed otherwise.
    """
    found, compiled = _lint(config, [scheduled])
    refuse(found, config)
    return replace(compiled[0], warnings=tuple(found))


def lint_all(config: Config) -> list[Finding]:
    """Returns the findings about a pipeline, submitted and scheduled.

    Raises as ``compile_checked``, but for ``LintError``.
    """
    return _lint(config, [False, True])[0]


def compile_config(config: Config, *, scheduled: bool = False) -> CompiledSpec:
    """Compiles a pipeline for the engine of its ``cloud`` section, without the linter.

    Args:
      config: a validated config.
      scheduled: for a schedule: the first task selects the spans when it runs, and the
        others are skipped if there is nothing new. Otherwise the spans are a parameter.

    Raises:
      LintError: TFX or the service refuses nodes of the pipeline.
      ConfigError: the config has no ``cloud.root``.
      UsageError: the pipeline cannot be created.
      NodeError: the process failed otherwise.
    """
    check_cloud(config)
    found, compiled = _compile(config, [scheduled])
    refuse(found, config)
    return compiled[0]


def check_cloud(config: Config) -> None:
    """Raises a ``ConfigError`` for a config without a ``cloud`` section."""
    if config.cloud is None:
        raise ConfigError(
            "the config has no section cloud",
            where=config.origin.file,
            expected="where a service runs the pipeline",
            hint="--profile vertex or --profile kubeflow, with --set "
            "cloud.root=gs://BUCKET/FOLDER",
        )


def _lint(
    config: Config, forms: Sequence[bool]
) -> tuple[list[Finding], list[CompiledSpec]]:
    """Returns all findings, and the compiled forms as far as TFX can compile them."""
    check_cloud(config)
    assert config.cloud is not None
    found = [*lint_config(config), *_lint_code(config)]
    absent = {key: _ABSENT[key] for key in _ABSENT if not getattr(config.cloud, key)}
    cloud = config.cloud.model_copy(update=absent)
    config = config.model_copy(update={"cloud": cloud})
    try:
        more, compiled = _compile(config, forms)
    except UsageError as refused:
        if not has_errors(found):
            raise
        more, compiled = [error("the pipeline", refused.what, "correct it")], []
    found += more
    for item in compiled:
        found += lint_spec(read_spec(item.job), config)
    return list(dict.fromkeys(found)), compiled


def _lint_code(config: Config) -> list[Finding]:
    """Code of the user's that no image holds; takes a second."""
    missing = modules_outside(config, image_of(config.root))
    if not missing:
        return []
    package = missing[0].partition(".")[0]
    what = f"it would not hold modules of the nodes: {', '.join(bounded(missing))}"
    fix = f"make {package} a package at the top of the project: {package}/__init__.py"
    return [error("the image", what, fix)]


def _compile(
    config: Config, forms: Sequence[bool]
) -> tuple[list[Finding], list[CompiledSpec]]:
    """Compiles a pipeline, scheduled or not; returns TFX's findings too."""
    with temporary_run_dir(config) as run_dir:
        job = Job(
            function="runners.cloud.compile_job:compile_job",
            arguments={"run_dir": str(run_dir), "forms": list(forms)},
            log=str(run_dir / "logs" / "compile.log"),
        )
        result = run_query_job(job, run_dir, COMPILE, cwd=config.root)
    compiled = [
        CompiledSpec(
            item["job"],
            tuple(Upload(Path(path), *rest) for path, *rest in item["uploads"]),
        )
        for item in result["compiled"]
    ]
    return [Finding(**item) for item in result["findings"]], compiled
