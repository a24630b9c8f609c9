"""Answers requests: shows pages, reports and logs, asks, and starts commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from reports.compare import compare
from reports.diff_page import render_diff
from reports.read_run import RunData, read_run
from reports.run_page import REPORT_FILE, render_run
from runners.operations.find_run import FoundRun
from runners.operations.logs import START
from runners.operations.schema.diff import diff
from runners.operations.schema.source import SchemaRequest
from runners.ui.actions import EXAMPLE, config_options, find_action
from runners.ui.guard import Session
from runners.ui.live import EVENT_STREAM, View, stream, ui_environment
from runners.ui.pages import Pages, trail
from runners.ui.run_tables import run_url
from schemas.diff.change import Change

# A report has a policy in its head. Whatever else is in it, it cannot send requests
# here as a page of this server could.
_REPORT_CSP = "sandbox allow-scripts; frame-ancestors 'none'"

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Site:
    """The endpoints; those that are no coroutines are called in threads."""

    session: Session
    pages: Pages
    is_stopping: Callable[[], bool]

    def page(self, make_view: Callable[[Request], View]) -> Endpoint:
        """Returns the endpoint of a page, and of the stream of its changes."""

        async def endpoint(request: Request) -> Response:
            make = partial(make_view, request)
            if EVENT_STREAM in request.headers.get("accept", ""):
                events = stream(make, self.is_stopping)
                return StreamingResponse(events, media_type=EVENT_STREAM)
            return await run_in_threadpool(lambda: self._show(make()))

        return endpoint

    def report(self, request: Request) -> Response:
        """Shows the page of a run: of its end, or else of the run as it is now."""
        run_dir = self.pages.found(request).run_dir
        headers = {"Content-Security-Policy": _REPORT_CSP}
        written = run_dir / REPORT_FILE
        if written.is_file():
            return FileResponse(written, media_type="text/html", headers=headers)
        with read_run(run_dir) as run:
            return HTMLResponse(render_run(run), headers=headers)

    def diff(self, request: Request) -> Response:
        """Shows the differences between two runs of a pipeline, as a report."""
        name, ids = request.path_params["name"], request.query_params
        sides = [
            self.pages.project.run(name, ids.get(side, ""))
            for side in ("before", "after")
        ]
        before, after = (RunData(item.run_dir, item.record) for item in sides)
        headers = {"Content-Security-Policy": _REPORT_CSP}
        return HTMLResponse(render_diff(compare(before, after)), headers=headers)

    def log(self, request: Request) -> Response:
        """Shows the whole log of a node, as text."""
        found, node = self.pages.found(request), request.path_params["node"]
        path = found.run_dir / "logs" / f"{node}.log"
        known = [START, *(item.id for item in found.record.nodes)]
        if node not in known or Path(node).name != node or not path.is_file():
            raise HTTPException(404, "there is no such log")
        return FileResponse(path, media_type="text/plain; charset=utf-8")

    def ask(self, request: Request) -> Response:
        """Asks before a command is started."""
        found = self.pages.found(request)
        action = find_action(found, request.path_params["action"])
        values = {
            "action": action,
            "command": action.command(found, EXAMPLE).text,
            "changes": self._changes(found) if action.takes_changes else [],
            "form_token": self.session.form_token,
            "url": run_url(found),
        }
        above = (*trail(found), (f"run {found.record.run_id}", run_url(found)))
        return self._show(View(action.label, "ask.html.j2", values, above))

    async def act(self, request: Request) -> Response:
        """Starts a command."""
        form = await self.session.read_form(request)
        found = await run_in_threadpool(self.pages.found, request)
        name = request.path_params["action"]
        action = await run_in_threadpool(find_action, found, name)
        assert self.pages.children is not None
        # Not in a thread, which the child would end with.
        child = self.pages.children.start(
            action.command(found, form),
            title=action.label,
            pipeline=found.workspace.root.name,
            url=run_url(found),
        )
        return RedirectResponse(f"/commands/{child.number}", 303)

    def show_error(self, request: Request, error: Exception) -> Response:
        """Shows an error; a form's fields are still in the browser's history."""
        if isinstance(error, HTTPException):
            status, text = error.status_code, error.detail
        else:
            status, text = 422, str(error)
        view = View("not possible", "error.html.j2", {"text": text}, (("Sluice", "/"),))
        return self._show(view, status)

    def _show(self, view: View, status: int = 200) -> Response:
        page = ui_environment().get_template("ui.html.j2")
        html = page.render(
            title=view.title,
            trail=view.trail,
            content=view.markup(),
            is_live=view.is_live,
            read_only=self.pages.children is None,
        )
        return HTMLResponse(html, status)

    def _changes(self, found: FoundRun) -> list[Change]:
        """Returns the differences between a run's data and the reviewed schema."""
        profile, overrides = config_options(found) or (None, ())
        asked = SchemaRequest(
            name=found.record.pipeline,
            profile=profile,
            overrides=overrides,
            workspace_dir=str(found.workspace.root.parent),
            run_id=found.record.run_id,
        )
        return list(diff(asked).diff.changes)
