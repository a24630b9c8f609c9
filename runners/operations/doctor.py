"""Operation: checks this machine and a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.doctor.check import Check
from runners.doctor.run_checks import run_checks
from runners.operations.pipeline_request import PipelineRequest
from sluice.project import current_project
from sluice.workspace import locate


@dataclass(frozen=True, kw_only=True)
class DoctorRequest:
    """The workspaces to check.

    Without ``name``, those of all pipelines of the project.
    """

    name: str | None = None
    workspace_dir: str | None = None


def doctor(request: DoctorRequest) -> Iterator[Check]:
    """Yields the result of each check as soon as it is known.

    Raises:
      UsageError: the config does not exist.
    """
    where = request.workspace_dir
    if request.name is None:
        return run_checks(locate(current_project(Path.cwd()), "", where).root)
    pipeline = PipelineRequest(name=request.name, workspace_dir=where)
    return run_checks(pipeline.workspace_of(pipeline.load_config()).root)
