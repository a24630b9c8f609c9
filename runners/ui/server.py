"""The server: which address shows which page; it only reads.

It listens on a port of 127.0.0.1, and stops on SIGINT and SIGTERM.

It acts with the rights of whoever started it, and any page in any browser of the
machine can send requests to it. So a request must have a host name that no DNS server
can point here, and the printed token, or the cookie that it sets (also to read: data is
private on a shared machine).
"""

from __future__ import annotations

import hmac
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    Response,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from reports.compare import compare
from reports.diff_page import render_diff
from reports.environment import inline
from reports.read_run import REPORT_FILE, RunData, read_run
from reports.run_page import render_run
from runners.ui import pages
from runners.ui.pages import DIFF_PAGE, REPORT_PAGE, View
from runners.ui.run_view import log_files
from sluice.errors import ExitCode, SluiceError, UsageError
from sluice.workspace import next_command

_ADDRESS = "127.0.0.1"
_STOP_S = 3
_PIPELINE = "/pipelines/{name}"
# As on disk: the link from one report to another is relative.
_RUN = _PIPELINE + "/runs/{run_id}/"
# A report has a policy in its head. Whatever else is in it, it cannot send requests
# here as a page of this server could. Its links have no cookie either: pages of this
# server show it in a frame, below links of their own.
_REPORT_HEADERS = {
    "Content-Security-Policy": (
        # The second for the link to a service's console.
        "sandbox allow-scripts allow-top-navigation-by-user-activation; "
        "frame-ancestors 'self'"
    )
}


def _page(make_view: Callable[[Request], View]) -> Callable[[Request], Response]:
    """Returns the endpoint of a page; those that are no coroutines run in threads."""
    return lambda request: HTMLResponse(make_view(request).render())


def _report(request: Request) -> Response:
    """Shows the page of a run: of its end, or else of the run as it is now."""
    run_dir = pages.find(request).run_dir
    written = run_dir / REPORT_FILE
    if written.is_file():
        return FileResponse(written, headers=_REPORT_HEADERS)
    with read_run(run_dir) as run:
        return HTMLResponse(render_run(run), headers=_REPORT_HEADERS)


def _diff(request: Request) -> Response:
    """Shows the differences between two runs of a pipeline, as a report."""
    found = pages.compared(request)
    before, after = (RunData(item.run_dir, item.record) for item in found)
    return HTMLResponse(render_diff(compare(before, after)), 200, _REPORT_HEADERS)


def _log(request: Request) -> Response:
    """Shows the whole log of a node, as text."""
    path = log_files(pages.find(request)).get(request.path_params["node"])
    if path is None:
        raise HTTPException(404, "there is no such log")
    return FileResponse(path, media_type="text/plain; charset=utf-8")


def make_app(token: str, cookie: str) -> Starlette:
    """Returns the application.

    Args:
      token: whoever has it may see the pages.
      cookie: the name of the cookie with the token.
    """
    return Starlette(
        routes=[
            Route("/", _page(pages.pipelines)),
            Route("/static/page.css", partial(_asset, "page.css.j2", "text/css")),
            Route("/static/page.js", partial(_asset, "page.js", "text/javascript")),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
            Route(_PIPELINE, _page(pages.runs)),
            Route(f"{_PIPELINE}/diff", _page(pages.diff)),
            Route(f"{_PIPELINE}/{DIFF_PAGE}", _diff),
            Route(_RUN, _page(pages.run)),
            Route(f"{_RUN}{REPORT_FILE}", _page(pages.report)),
            Route(f"{_RUN}{REPORT_PAGE}", _report),
            Route(f"{_RUN}logs/{{node}}", _log),
        ],
        middleware=guards(token, cookie),
        exception_handlers={SluiceError: _show_error},
    )


def _show_error(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 422)


def _asset(name: str, media_type: str, request: Request) -> Response:
    return Response(inline(name), media_type=media_type)


def serve(port: int, on_ready: Callable[[str, str], None]) -> None:
    """Serves the project's workspaces until SIGINT or SIGTERM.

    Args:
      port: of 127.0.0.1; 0 for any free one.
      on_ready: called with the address to open and the token in it, once connections
        are accepted.

    Raises:
      UsageError: the port cannot be used.
    """
    try:
        listener = socket.create_server((_ADDRESS, port))
    except OSError as error:
        command = next_command("ui", "--port", "0")
        raise UsageError(
            f"port {port} of {_ADDRESS} cannot be used",
            actual=os.strerror(error.errno or 0),
            hint=f"{command}   (any free port)",
        ) from error
    # uvicorn raises the signal again at its end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    with suppress(KeyboardInterrupt), listener:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            make_app(token, f"sluice_ui_{port}"),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
        )
        on_ready(f"http://{_ADDRESS}:{port}/?token={token}", token)
        uvicorn.Server(config).run(sockets=[listener])


_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    # Not the path, which may have the token. With "no-referrer" browsers send
    # "Origin: null" with every form.
    "Referrer-Policy": "origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# A browser sends no cookie with a link of another site, but it does from this page.
_NO_TOKEN = (
    "<!doctype html><title>Sluice</title>Open the address that <code>sluice ui</code> "
    'has printed. If you have done so and came by a link: <a href="">go on</a>'
)


def guards(token: str, cookie: str) -> list[Middleware]:
    """Returns what every request must pass.

    Args:
      token: in the printed address.
      cookie: name of the cookie; cookies are shared by all ports of a host.
    """
    return [
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"]),
        Middleware(BaseHTTPMiddleware, dispatch=partial(_guard, token, cookie)),
    ]


async def _guard(
    token: str, cookie: str, request: Request, call_next: RequestResponseEndpoint
) -> Response:
    response: Response
    asked = request.query_params.get("token")
    given = asked or request.cookies.get(cookie, "")
    if not hmac.compare_digest(given.encode(), token.encode()):
        response = HTMLResponse(_NO_TOKEN, 401)
    else:
        response = await call_next(request)
        if asked:
            response.set_cookie(cookie, token, httponly=True, samesite="strict")
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response
