"""The content of the pages, from the records and the operations."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from pipeline.config.load import load_config
from pipeline.graph.choose_spans import choose_spans
from reports.read_run import EpochReports
from runners.operations.find_run import FoundRun, all_workspaces, read_record
from runners.operations.models import ListedModel, list_models
from runners.ui.actions import Action, ChildProcesses, possible_actions
from runners.ui.live import View
from runners.ui.run_view import run_values
from runners.ui.tables import (
    pipeline_table,
    pipeline_url,
    run_index,
    run_url,
    span_table,
    version_table,
)
from sluice.errors import SluiceError, WorkspaceError
from sluice.project import current_project
from sluice.workspace import Workspace

_HOME = ("Sluice", "/")
# Runs whose documents are read for a table.
_MAX_RUNS = 50


@dataclass(frozen=True)
class Pages:
    """The pages of the project in the current directory, as it is now.

    A run or pipeline that does not exist cannot be named in an address.

    Attributes:
      children: the commands that were started; None if nothing may be started.
      epochs: the reports of running trainings.
    """

    children: ChildProcesses | None
    epochs: EpochReports = field(default_factory=EpochReports)

    def pipelines(self, request: Request) -> View:
        """All pipelines with their last run, and the commands that were started."""
        newest = [islice(_runs(item), 1) for item in self._workspaces().values()]
        last = [found for runs in newest for found in runs]
        configs = (current_project(Path.cwd()) / "configs").glob("*.yaml")
        names = {path.stem for path in configs} - {found.name for found in last}
        values = {
            "table": pipeline_table(last),
            "not_run": sorted(names),
            "commands": self.children.started if self.children else [],
        }
        return View("Sluice", "pipelines.html.j2", values, is_live=True)

    def runs(self, request: Request) -> View:
        """The runs of a pipeline."""
        name = request.path_params["name"]
        runs = self._newest_runs(name)
        values = {
            "url": pipeline_url(name),
            "index": run_index(runs),
            "run_ids": [item.record.run_id for item in runs],
            "most": _MAX_RUNS,
        }
        return View(name, "runs.html.j2", values, (_HOME,))

    def run(self, request: Request) -> View:
        """A run, live while it is in progress."""
        found = self.found(request)
        run_id, workspace = found.record.run_id, found.workspace
        # One that has ended holds the lock a little longer, and has no buttons yet.
        is_ending = run_id == workspace.run_ids()[-1] and workspace.is_running()
        is_live = found.record.status == "running" or is_ending
        values = {
            "url": run_url(found),
            "actions": possible_actions(found) if self.children else [],
            **run_values(found, request.query_params.get("log"), self.epochs),
        }
        title = f"run {run_id}"
        return View(title, "run_live.html.j2", values, _up(found.name), is_live)

    def ask(self, request: Request) -> View:
        """Asks before a command is started."""
        found, action = self.action(request)
        values = {
            "action": action,
            "command": shlex.join(action.command("REASON")),
            "url": run_url(found),
        }
        trail = (*_up(found.name), (f"run {found.record.run_id}", run_url(found)))
        return View(action.label, "ask.html.j2", values, trail)

    def models(self, request: Request) -> View:
        """The pushed versions of a pipeline, and the models of its runs."""
        name = request.path_params["name"]
        notices: list[str] = []
        listed: list[ListedModel] = []
        try:
            listed = list_models(load_config(name))
        except SluiceError as error:
            notices.append(str(error))
        notices += [
            f"version {item.version.version} is {state}: {why}"
            for item in listed
            for state, why in item.flaws.items()
        ]
        table = version_table(listed, self._newest_runs(name))
        values = {"notices": notices, "versions": table}
        return View("models", "models.html.j2", values, _up(name))

    def data(self, request: Request) -> View:
        """The spans that runs have read, and those that the next one would read."""
        name = request.path_params["name"]
        values: dict[str, object] = {"notice": None}
        values["spans"] = span_table(self._newest_runs(name))
        try:
            window = choose_spans(load_config(name)).data
            values |= {"chosen": window.spans, "skipped": window.skipped}
        except SluiceError as error:
            values["notice"] = str(error)
        return View("data", "data.html.j2", values, _up(name))

    def command(self, request: Request) -> View:
        """The output of a command that was started here."""
        started = self.children.started if self.children else []
        index = request.path_params["index"]
        if index >= len(started):
            raise HTTPException(404, "this server has started no such command")
        child = started[index]
        is_live, values = child.exit_code is None, {"child": child}
        return View(child.title, "command.html.j2", values, (_HOME,), is_live)

    def action(self, request: Request) -> tuple[FoundRun, Action]:
        """Returns the run and the button that an address names.

        Raises:
          HTTPException: the run has no such button, or not any more.
        """
        found = self.found(request)
        for action in possible_actions(found):
            if action.name == request.path_params["action"]:
                return found, action
        raise HTTPException(409, "this is not possible for the run as it is now")

    def found(self, request: Request, run_id: str | None = None) -> FoundRun:
        """Returns the run that an address names.

        Raises:
          HTTPException: there is none.
          WorkspaceError: its record cannot be read.
        """
        workspace = self._workspace(request.path_params["name"])
        run_id = request.path_params["run_id"] if run_id is None else run_id
        if run_id not in workspace.run_ids():
            raise HTTPException(404, "there is no such run")
        return FoundRun(workspace, read_record(workspace, run_id))

    def _workspaces(self) -> dict[str, Workspace]:
        return {item.root.name: item for item in all_workspaces()}

    def _workspace(self, name: str) -> Workspace:
        found = self._workspaces().get(name)
        if found is None:
            raise HTTPException(404, "there is no such pipeline, or it has not run yet")
        return found

    def _newest_runs(self, name: str) -> list[FoundRun]:
        return list(islice(_runs(self._workspace(name)), _MAX_RUNS))


def _runs(workspace: Workspace) -> Iterator[FoundRun]:
    """Yields the readable runs of a pipeline, newest first."""
    for run_id in reversed(workspace.run_ids()):
        with suppress(WorkspaceError):
            yield FoundRun(workspace, read_record(workspace, run_id))


def _up(name: str) -> tuple[tuple[str, str], ...]:
    return (_HOME, (name, pipeline_url(name)))
