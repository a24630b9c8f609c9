"""The content of the pages, from the records of the project in the current directory.

While a page is open ``static/ui.js`` loads it again every second or so, and replaces
what has changed. So a page has one template, live or not.
"""

from __future__ import annotations

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
from runners.ui.run_view import (
    pipeline_card,
    pipeline_url,
    run_index,
    run_url,
    run_values,
)
from sluice.errors import WorkspaceError
from sluice.project import current_project
from sluice.workspace import Workspace

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

    def render(self) -> str:
        """Returns the page."""
        place = " · ".join([self.title, *(name for name, _ in self.trail[::-1])])
        template = _environment().get_template("ui.html.j2")
        return template.render(self.values, view=self, place=place)


def pipelines(request: Request) -> View:
    """All pipelines of the project, with their last run."""
    newest = [islice(_runs(item), 1) for item in all_workspaces()]
    last = [found for runs in newest for found in runs]
    configs = (current_project(Path.cwd()) / "configs").glob("*.yaml")
    values = {
        "cards": [pipeline_card(found) for found in last],
        "not_run": sorted({x.stem for x in configs} - {found.name for found in last}),
    }
    return View("Sluice", "pipelines.html.j2", values, is_live=True)


def runs(request: Request) -> View:
    """The runs of a pipeline."""
    name = request.path_params["name"]
    newest = list(islice(_runs(_workspace(name)), _MAX_RUNS))
    values = {
        "url": pipeline_url(name),
        "index": run_index(newest),
        "run_ids": [item.record.run_id for item in newest],
        "most": _MAX_RUNS,
    }
    is_live = bool(newest) and newest[0].record.status == "running"
    return View(name, "runs.html.j2", values, (_HOME,), is_live)


def run(request: Request) -> View:
    """A run, live while it is in progress."""
    found = find(request)
    run_id, workspace = found.record.run_id, found.workspace
    # One that has ended holds the lock a little longer.
    is_ending = run_id == workspace.run_ids()[-1] and workspace.is_running()
    is_live = found.record.status == "running" or is_ending
    log = request.query_params.get("log")
    values = {"url": run_url(found), **run_values(found, log)}
    up = _up(found.name)
    return View(f"run {run_id}", "run_live.html.j2", values, up, is_live)


def report(request: Request) -> View:
    """The report of a run, in a frame, since it has no session of its own."""
    found = find(request)
    status = found.record.status
    # It is loaded again at the end of the run.
    values = {"address": f"{run_url(found)}{REPORT_PAGE}?{status}"}
    up = (*_up(found.name), (f"run {found.record.run_id}", run_url(found)))
    return View("report", "frame.html.j2", values, up, status == "running")


def diff(request: Request) -> View:
    """The differences between two runs, in a frame as a report is."""
    name = request.path_params["name"]
    values = {"address": f"{pipeline_url(name)}/{DIFF_PAGE}?{request.url.query}"}
    compared(request)
    return View("comparison", "frame.html.j2", values, _up(name))


def compared(request: Request) -> list[FoundRun]:
    """Returns the two runs that an address names; see ``find``."""
    ids = [request.query_params.get(side, "") for side in ("before", "after")]
    return [find(request, run_id) for run_id in ids]


def find(request: Request, run_id: str | None = None) -> FoundRun:
    """Returns the run that an address names.

    A run or pipeline that does not exist cannot be named in an address.

    Raises:
      HTTPException: there is none.
      WorkspaceError: its record cannot be read.
    """
    workspace = _workspace(request.path_params["name"])
    run_id = request.path_params["run_id"] if run_id is None else run_id
    if run_id not in workspace.run_ids():
        raise HTTPException(404, "there is no such run")
    return FoundRun(workspace, read_record(workspace, run_id))


def _workspace(name: str) -> Workspace:
    for workspace in all_workspaces():
        if workspace.root.name == name:
            return workspace
    raise HTTPException(404, "there is no such pipeline, or it has not run yet")


def _runs(workspace: Workspace) -> Iterator[FoundRun]:
    """Yields the readable runs of a pipeline, newest first."""
    for run_id in reversed(workspace.run_ids()):
        with suppress(WorkspaceError):
            yield FoundRun(workspace, read_record(workspace, run_id))


def _up(name: str) -> tuple[tuple[str, str], ...]:
    return (_HOME, (name, pipeline_url(name)))
