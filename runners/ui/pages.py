"""The content of the pages, from the records and the operations.

While a page is open ``static/ui.js`` loads it again every second or so, and replaces
what has changed. So a page has one template, live or not.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from starlette.exceptions import HTTPException
from starlette.requests import Request

from reports.environment import TEMPLATES, environment
from runners.operations.find_run import FoundRun, all_workspaces, read_record
from runners.ui.actions import Action, ChildProcesses, first_action, possible_actions
from runners.ui.run_view import (
    pipeline_card,
    pipeline_url,
    run_index,
    run_url,
    run_values,
)
from sluice.errors import WorkspaceError
from sluice.project import current_project
from sluice.workspace import Workspace, locate

_HOME = ("Sluice", "/")
# Pages that are in frames.
REPORT_PAGE, DIFF_PAGE = "page.html", "diff.html"
# Runs whose documents are read for a table.
_MAX_RUNS = 50


@cache
def _environment() -> Environment:
    """Returns the environment of the pages, with the templates of the reports."""
    own = Path(__file__).parent / "templates"
    return environment().overlay(loader=FileSystemLoader([own, TEMPLATES]))


@dataclass(frozen=True)
class View:
    """The content of a page.

    Attributes:
      title: of the page.
      template: of the content.
      values: of the template.
      trail: name and address of the pages above it.
      is_live: whether it may change while it is open.
    """

    title: str
    template: str
    values: dict[str, Any] = field(default_factory=dict)
    trail: tuple[tuple[str, str], ...] = ()
    is_live: bool = False

    def render(self, is_read_only: bool) -> str:
        """Returns the page."""
        place = " · ".join([self.title, *(name for name, _ in self.trail[::-1])])
        return (
            _environment()
            .get_template("ui.html.j2")
            .render(
                self.values,
                view=self,
                place=place,
                is_read_only=is_read_only,
            )
        )


@dataclass(frozen=True)
class Pages:
    """The pages of the project in the current directory, as it is now.

    A run or pipeline that does not exist cannot be named in an address.

    Attributes:
      children: the commands that were started; None if nothing may be started.
    """

    children: ChildProcesses | None

    def pipelines(self, request: Request) -> View:
        """All pipelines with their last run, and the commands that were started."""
        newest = [islice(_runs(item), 1) for item in self._workspaces().values()]
        last = [found for runs in newest for found in runs]
        configs = _config_names()
        values = {
            "cards": [pipeline_card(found, self._actions(found)) for found in last],
            "not_run": sorted(configs - {found.name for found in last}),
            "can_start": configs if self.children else (),
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
        is_live = bool(runs) and runs[0].record.status == "running"
        return View(name, "runs.html.j2", values, (_HOME,), is_live)

    def run(self, request: Request) -> View:
        """A run, live while it is in progress."""
        found = self.found(request)
        run_id, workspace = found.record.run_id, found.workspace
        # One that has ended holds the lock a little longer, and has no buttons yet.
        is_ending = run_id == workspace.run_ids()[-1] and workspace.is_running()
        is_live = found.record.status == "running" or is_ending
        values = {
            "url": run_url(found),
            "actions": self._actions(found),
            **run_values(found, request.query_params.get("log")),
        }
        up = _up(found.name)
        return View(f"run {run_id}", "run_live.html.j2", values, up, is_live)

    def report(self, request: Request) -> View:
        """The report of a run, in a frame, since it has no session of its own."""
        found = self.found(request)
        status = found.record.status
        # It is loaded again at the end of the run.
        values = {"address": f"{run_url(found)}{REPORT_PAGE}?{status}"}
        up, is_live = _up_from_run(found), status == "running"
        return View("report", "frame.html.j2", values, up, is_live)

    def diff(self, request: Request) -> View:
        """The differences between two runs, in a frame as a report is."""
        name = request.path_params["name"]
        values = {"address": f"{pipeline_url(name)}/{DIFF_PAGE}?{request.url.query}"}
        self.compared(request)
        return View("comparison", "frame.html.j2", values, _up(name))

    def ask(self, request: Request) -> View:
        """Asks before a command is started."""
        found, action = self.action(request)
        command = shlex.join(action.words)
        up = _up_from_run(found) if found else (_HOME,)
        values = {"action": action, "command": command, "url": up[-1][1]}
        title = f"{action.label} {request.path_params['name']}"
        return View(action.label if found else title, "ask.html.j2", values, up)

    def command(self, request: Request) -> View:
        """The output of a command that was started here."""
        started = self.children.started if self.children else []
        index = request.path_params["index"]
        if index >= len(started):
            raise HTTPException(404, "this server has started no such command")
        child = started[index]
        is_live, values = child.exit_code is None, {"child": child}
        return View(child.title, "command.html.j2", values, (_HOME,), is_live)

    def action(self, request: Request) -> tuple[FoundRun | None, Action]:
        """Returns the button that an address names, and its run unless it needs none.

        Raises:
          HTTPException: there is no such button, or not any more.
        """
        if "run_id" in request.path_params:
            run = self.found(request)
            actions = possible_actions(run)
        else:
            name = request.path_params["name"]
            workspace = locate(current_project(Path.cwd()), name)
            can_run = name in _config_names() and not workspace.is_running()
            run, actions = None, [first_action(name, workspace)] if can_run else []
        for action in actions:
            if action.name == request.path_params["action"]:
                return run, action
        raise HTTPException(409, "this is not possible for the run as it is now")

    def compared(self, request: Request) -> list[FoundRun]:
        """Returns the two runs that an address names; see ``found``."""
        ids = [request.query_params.get(side, "") for side in ("before", "after")]
        return [self.found(request, run_id) for run_id in ids]

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

    def _actions(self, found: FoundRun) -> list[Action]:
        return possible_actions(found) if self.children else []

    def _newest_runs(self, name: str) -> list[FoundRun]:
        return list(islice(_runs(self._workspace(name)), _MAX_RUNS))


def _runs(workspace: Workspace) -> Iterator[FoundRun]:
    """Yields the readable runs of a pipeline, newest first."""
    for run_id in reversed(workspace.run_ids()):
        with suppress(WorkspaceError):
            yield FoundRun(workspace, read_record(workspace, run_id))


def _config_names() -> set[str]:
    configs = (current_project(Path.cwd()) / "configs").glob("*.yaml")
    return {path.stem for path in configs}


def _up_from_run(found: FoundRun) -> tuple[tuple[str, str], ...]:
    return (*_up(found.name), (f"run {found.record.run_id}", run_url(found)))


def _up(name: str) -> tuple[tuple[str, str], ...]:
    return (_HOME, (name, pipeline_url(name)))
