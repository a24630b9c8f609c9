"""Operation: checks this machine and a workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.doctor.check import Check
from runners.doctor.run_checks import run_checks
from runners.operations.pipeline_request import PipelineRequest
from sluice.errors import UsageError
from sluice.project import find_root
from sluice.workspace import locate


@dataclass(frozen=True, kw_only=True)
class DoctorRequest:
    """Which workspaces are looked at.

    Attributes:
      name: a config's name or path; None for all of the project, if this is in one.
      workspace_dir: the folder that holds one workspace per pipeline.
    """

    name: str | None = None
    workspace_dir: str | None = None


def doctor(request: DoctorRequest) -> Iterator[Check]:
    """Yields what each check has found, as soon as it is known.

    Raises:
      UsageError: there is no such config.
    """
    return run_checks(_workspace_folder(request))


def _workspace_folder(request: DoctorRequest) -> Path | None:
    """Returns the folder that the rows about the workspace are about, if any."""
    where = request.workspace_dir
    if request.name:
        of_pipeline = PipelineRequest(name=request.name, workspace_dir=where)
        return of_pipeline.workspace_of(of_pipeline.load_config()).root
    try:
        root = find_root(Path.cwd())
    except UsageError:
        if not (where or os.environ.get("SLUICE_WORKSPACE")):
            return None
        root = Path.cwd()
    return locate(root, "", where).root
