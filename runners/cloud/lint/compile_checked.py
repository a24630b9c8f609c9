"""Compiles a pipeline for a service, and lints it before and afterwards.

The config is linted first, so that most faults are told at once instead of after TFX's
import. ``lint_all`` goes on where it can, and finds everything.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.config.config import Config
from runners.cloud.compile_spec import CompiledSpec, check_cloud, compile_config
from runners.cloud.image import image_of, modules_outside
from runners.cloud.lint.finding import Finding, LintError, error, refuse, warning
from runners.cloud.lint.lint_config import lint_config
from runners.cloud.lint.lint_spec import lint_spec
from runners.cloud.spec import read_spec
from sluice.errors import ConfigError, bounded


def compile_checked(config: Config, *, scheduled: bool = False) -> CompiledSpec:
    """Compiles a pipeline that the service can run.

    Args:
      config: a validated config.
      scheduled: see ``compile_config``.

    Returns:
      The compiled pipeline, with all warnings of the linter.

    Raises:
      LintError: the service would refuse the pipeline, or a run there would fail.
      ConfigError: the config has no ``cloud`` section, or cannot be compiled.
      NodeError: the process failed otherwise.
    """
    if config.cloud is None:
        check_cloud(config)
    found = lint_config(config)
    refuse(found, config)
    found += _lint_code(config)
    compiled = compile_config(config, scheduled=scheduled)
    found += [*compiled.warnings, *lint_spec(read_spec(compiled.job), config)]
    refuse(found, config)
    return replace(compiled, warnings=tuple(found))


def lint_all(config: Config) -> list[Finding]:
    """Returns the findings about a pipeline, as far as it can be compiled.

    Args:
      config: a validated config with a ``cloud`` section.

    Raises:
      UsageError: the pipeline cannot be created, on this machine either.
      NodeError: the process failed otherwise.
    """
    found = [*lint_config(config), *_lint_code(config)]
    try:
        compiled = compile_config(config)
    except LintError as refused:
        return [*found, *refused.findings]
    except ConfigError as refused:
        if not any(item.severity == "error" for item in found):
            raise
        what = f"it was not compiled: {refused.what}"
        fix = "correct the errors, and validate again"
        return [*found, warning("the compiled pipeline", what, fix)]
    return [*found, *compiled.warnings, *lint_spec(read_spec(compiled.job), config)]


def _lint_code(config: Config) -> list[Finding]:
    """Code of the user's that no image holds; takes a second."""
    missing = modules_outside(config, image_of(config.root))
    if not missing:
        return []
    package = missing[0].partition(".")[0]
    what = f"it would not hold modules of the nodes: {', '.join(bounded(missing))}"
    fix = f"make {package} a package at the top of the project: {package}/__init__.py"
    return [error("the image", what, fix)]
