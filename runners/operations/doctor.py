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

    Attributes:
      name: a config's name or path; None for all of the project.
      workspace_dir: the folder that holds one workspace per pipeline.
    """

    name: str | None = None
    workspace_dir: str | None = None


def doctor(request: DoctorRequest) -> Iterator[Check]:
    """Yields the result of each check as soon as it is known.

    Raises:
      UsageError: the config does not exist.
    """
    return run_checks(_workspace_folder(request))


def _workspace_folder(request: DoctorRequest) -> Path:
    """Returns the workspace of the pipeline, or the folder of all workspaces."""
    where = request.workspace_dir
    if request.name:
        of_pipeline = PipelineRequest(name=request.name, workspace_dir=where)
        return of_pipeline.workspace_of(of_pipeline.load_config()).root
    return locate(current_project(Path.cwd()), "", where).root
