"""Findings of the linter, and the error that lists them.

An error is what the service refuses, or what fails or goes wrong silently in a run
there. A warning may be right: a name that is newer than the table of machines, or a
value that only looks wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.config.config import Config
from sluice.errors import ConfigError

SERVICES = {"vertex": "Vertex AI", "kubeflow": "Kubeflow Pipelines"}


@dataclass(frozen=True)
class Finding:
    """What is wrong with a pipeline for a service.

    Attributes:
      severity: errors stop ``compile`` and ``submit``.
      where: the config's file, line and key, or the task and its parameter.
      what: one sentence, without a final period.
      fix: what to do; likewise.
    """

    severity: Literal["error", "warning"]
    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)


def error(where: str, what: str, fix: str) -> Finding:
    """Returns a finding that stops ``compile`` and ``submit``."""
    return Finding("error", where, what, fix)


def warning(where: str, what: str, fix: str) -> Finding:
    """Returns a finding that does not."""
    return Finding("warning", where, what, fix)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether a finding stops ``compile`` and ``submit``."""
    return any(item.severity == "error" for item in findings)


class LintError(ConfigError):
    """The service would refuse the pipeline, or a run there would fail.

    Attributes:
      findings: all of them, warnings included.
    """

    findings: tuple[Finding, ...] = ()


def refuse(findings: Sequence[Finding], config: Config) -> None:
    """Raises one ``LintError`` for all findings, if one of them is an error.

    Args:
      findings: about one pipeline.
      config: of the pipeline, with a ``cloud`` section.
    """
    assert config.cloud is not None
    errors = [item for item in findings if item.severity == "error"]
    if not errors:
        return
    warnings = [item for item in findings if item.severity == "warning"]
    number = "1 problem" if len(errors) == 1 else f"{len(errors)} problems"
    found = LintError(
        f"the pipeline {config.name!r} cannot run on "
        f"{SERVICES[config.cloud.engine]}: {number}",
        details=[
            *(f"  - {item}" for item in errors),
            *(f"  - warning: {item}" for item in warnings),
        ],
    )
    found.findings = (*errors, *warnings)
    found.facts = {"findings": [item.to_dict() for item in found.findings]}
    raise found
