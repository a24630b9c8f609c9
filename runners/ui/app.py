"""The application: which address shows which page, and which form starts what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from reports.environment import inline
from reports.run_page import REPORT_FILE
from runners.ui.child_processes import ChildProcesses
from runners.ui.guard import Guard, Session
from runners.ui.pages import Pages
from runners.ui.project import Project
from runners.ui.site import Site
from sluice.errors import SluiceError

_STATIC = Path(__file__).parent / "static"
_PIPELINE = "/pipelines/{name}"
# As on disk: the link from one report to another is relative.
_RUN = _PIPELINE + "/runs/{run_id}/"


def make_app(
    project: Project,
    session: Session,
    children: ChildProcesses | None,
    is_stopping: Callable[[], bool],
) -> Starlette:
    """Returns the application.

    Args:
      project: whose pipelines it shows.
      session: decides who may see them.
      children: starts commands; None if nothing may be started.
      is_stopping: whether the server is about to end.
    """
    pages = Pages(project, children)
    site = Site(session, pages, is_stopping)
    routes = [
        Route("/", site.page(pages.pipelines)),
        Route("/static/{file}", _static),
        Route(_PIPELINE, site.page(pages.runs)),
        Route(f"{_PIPELINE}/diff", site.diff),
        Route(f"{_PIPELINE}/models", site.page(pages.models)),
        Route(f"{_PIPELINE}/data", site.page(pages.data)),
        Route(_RUN, site.page(pages.run)),
        Route(f"{_RUN}{REPORT_FILE}", site.report),
        Route(f"{_RUN}logs/{{node}}", site.log),
    ]
    if children is not None:
        routes += [
            Route("/commands/{number:int}", site.page(pages.command)),
            Route(f"{_RUN}do/{{action}}", site.ask, methods=["GET"]),
            Route(f"{_RUN}do/{{action}}", site.act, methods=["POST"]),
        ]
    errors = (HTTPException, SluiceError)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, session=session)],
        exception_handlers={kind: site.show_error for kind in errors},
    )


def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name == "page.css":
        return Response(inline("page.css.j2"), media_type="text/css")
    if name == "page.js":
        return Response(inline("page.js"), media_type="text/javascript")
    if name in ("ui.css", "ui.js"):
        return FileResponse(_STATIC / name)
    raise HTTPException(404)
