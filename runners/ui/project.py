"""The pipelines and runs that requests name: only those that exist can be named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from starlette.exceptions import HTTPException

from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.find_run import FoundRun, all_workspaces
from sluice.errors import WorkspaceError
from sluice.project import current_project
from sluice.record.load_record import load_record
from sluice.record.run_record import RECORD_FILE, RunRecord
from sluice.workspace import Workspace


@dataclass(frozen=True)
class Project:
    """The project in the current directory, and its workspaces as they are now."""

    workspace_dir: str | None = None
    _read: dict[Path, tuple[tuple[int, ...], RunRecord]] = field(default_factory=dict)

    def workspaces(self) -> dict[str, Workspace]:
        """Returns the workspace of each pipeline that has one."""
        return {item.root.name: item for item in all_workspaces(self.workspace_dir)}

    def configs(self) -> list[str]:
        """Returns the names of the project's configs."""
        folder = current_project(Path.cwd()) / "configs"
        return sorted(path.stem for path in folder.glob("*.yaml"))

    def workspace(self, name: str) -> Workspace:
        """Returns the workspace of a pipeline.

        Raises:
          HTTPException: there is none.
        """
        found = self.workspaces().get(name)
        if found is None:
            raise HTTPException(404, "there is no such pipeline, or it has not run yet")
        return found

    def run(self, name: str, run_id: str) -> FoundRun:
        """Returns a run; one that was killed is completed.

        Raises:
          HTTPException: there is none.
          WorkspaceError: its record cannot be read.
        """
        workspace = self.workspace(name)
        if run_id not in workspace.run_ids():
            raise HTTPException(404, "there is no such run")
        return self._run(workspace, run_id)

    def runs(self, workspace: Workspace) -> Iterator[FoundRun]:
        """Yields the readable runs of a pipeline, newest first."""
        for run_id in reversed(workspace.run_ids()):
            with suppress(WorkspaceError):
                yield self._run(workspace, run_id)

    def _run(self, workspace: Workspace, run_id: str) -> FoundRun:
        record = self._record(workspace, run_id)
        if record.status == "running" and not workspace.is_running():
            complete_killed_runs(workspace)
            record = self._record(workspace, run_id)
        return FoundRun(workspace, record)

    def _record(self, workspace: Workspace, run_id: str) -> RunRecord:
        """Returns a record, from memory if its file is the same."""
        run_dir = workspace.run_dir(run_id)
        try:
            stat = (run_dir / RECORD_FILE).stat()
        except FileNotFoundError:
            return load_record(run_dir)
        key = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = self._read.get(run_dir)
        if known is None or known[0] != key:
            known = self._read[run_dir] = (key, load_record(run_dir))
        return known[1]
