"""The content of the pages, from the records and the operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from starlette.exceptions import HTTPException
from starlette.requests import Request

from pipeline.graph.choose_spans import choose_spans
from reports.epoch_reports import EpochReports
from runners.operations.find_run import FoundRun
from runners.operations.models import ListedModel, list_models
from runners.operations.pipeline_request import PipelineRequest
from runners.ui.actions import possible_actions
from runners.ui.child_processes import Child, ChildProcesses
from runners.ui.live import View
from runners.ui.project import Project
from runners.ui.run_tables import (
    example_table,
    pipeline_table,
    pipeline_url,
    read_rows,
    run_index,
    run_url,
    span_table,
    version_table,
)
from runners.ui.run_view import run_values
from runners.ui.tensorboard import address
from sluice.errors import SluiceError

_HOME = ("Sluice", "/")
# Runs whose documents are read for a table.
_MAX_RUNS = 50


@dataclass(frozen=True)
class Pages:
    """The pages of a project; each takes the names that its address has.

    Attributes:
      project: its pipelines and runs.
      children: the commands that were started; None if nothing may be started.
      epochs: the reports of running trainings.
    """

    project: Project
    children: ChildProcesses | None
    epochs: EpochReports = field(default_factory=EpochReports)

    def pipelines(self, request: Request) -> View:
        """All pipelines with their last run, and the commands that were started."""
        last = {
            name: next(self.project.runs(workspace), None)
            for name, workspace in self.project.workspaces().items()
        }
        values = {
            "table": pipeline_table([found for found in last.values() if found]),
            "not_run": [name for name in self.project.configs() if not last.get(name)],
            "commands": self.children.all() if self.children else [],
        }
        return View("Sluice", "pipelines.html.j2", values, is_live=True)

    def runs(self, request: Request) -> View:
        """The runs of a pipeline."""
        name = request.path_params["name"]
        runs = self._runs(name)
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
        values = {
            "url": run_url(found),
            "actions": possible_actions(found) if self.children else [],
            **run_values(found, request.query_params.get("log"), self.epochs),
        }
        is_live = found.record.status == "running"
        title = f"run {found.record.run_id}"
        return View(title, "run_live.html.j2", values, trail(found), is_live)

    def models(self, request: Request) -> View:
        """The pushed versions of a pipeline, and the models of its runs."""
        name = request.path_params["name"]
        runs = self._runs(name)
        notices: list[str] = []
        listed: list[ListedModel] = []
        try:
            asked = PipelineRequest(name=name, workspace_dir=self.project.workspace_dir)
            listed = list_models(asked, notices.append)
        except SluiceError as error:
            notices.append(str(error))
        values = {
            "notices": notices,
            "flaws": [
                f"version {item.version.version} is {state}: {why}"
                for item in listed
                for state, why in item.flaws.items()
            ],
            "versions": version_table(listed, runs, read_rows(runs)),
        }
        return View("models", "models.html.j2", values, _up(name))

    def data(self, request: Request) -> View:
        """The spans that runs have read, and those that the next one would read."""
        name = request.path_params["name"]
        runs = self._runs(name)
        notices: list[str] = []
        chosen: list[str] = []
        skipped: list[str] = []
        try:
            window = choose_spans(PipelineRequest(name=name).load_config()).data
            chosen, skipped = list(map(str, window.spans)), window.skipped_lines
        except SluiceError as error:
            notices.append(str(error))
        values = {
            "notices": notices,
            "chosen": chosen,
            "skipped": skipped,
            "spans": span_table(runs),
            "examples": example_table(runs, read_rows(runs)),
        }
        return View("data", "data.html.j2", values, _up(name))

    def command(self, request: Request) -> View:
        """The output of a command that was started here."""
        child = self._child(request)
        is_running = child.exit_code is None
        output = child.output()
        values = {
            "child": child,
            "output": output,
            "address": address(output) if child.command.ends_with_server else None,
        }
        return View(
            child.title, "command.html.j2", values, _up(child.pipeline), is_running
        )

    def _runs(self, name: str) -> list[FoundRun]:
        """Returns the newest runs of a pipeline."""
        return list(islice(self.project.runs(self.project.workspace(name)), _MAX_RUNS))

    def found(self, request: Request) -> FoundRun:
        """Returns the run that an address names; see ``Project.run`` for the errors."""
        names = request.path_params
        return self.project.run(names["name"], names["run_id"])

    def _child(self, request: Request) -> Child:
        child = self.children and self.children.get(request.path_params["number"])
        if not child:
            raise HTTPException(404, "this server has started no such command")
        return child


def _up(name: str) -> tuple[tuple[str, str], ...]:
    return (_HOME, (name, pipeline_url(name)))


def trail(found: FoundRun) -> tuple[tuple[str, str], ...]:
    """Returns the pages above that of a run."""
    return _up(found.workspace.root.name)
