"""Refuses requests from other sites, other users and other host names.

The server acts with the rights of whoever started it, and any page in any browser of
the machine can send requests to it. So each request must have the cookie that only the
printed address sets (also to read: data is private on a shared machine), and a host
name that no DNS server can point here. A request that changes something must in
addition come from a page of this server, by its ``Origin`` and by a token in its form.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs, quote

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A tunnel may have another port.
_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.ASCII)
LOGIN = "/login"
FORM_TOKEN = "form_token"
_MAX_FORM_BYTES = 100_000
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" browsers send "Origin: null" with every form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NO_TOKEN = "open the address that `sluice ui` has printed in the terminal\n"


def _new_token() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class Session:
    """The secrets of one start of the server.

    Attributes:
      cookie: name of the cookie; cookies are shared by all ports of a host.
      token: opens a session, any number of times.
      ticket: opens one session; ``--open`` passes it to the browser, whose command line
        other users can read.
      form_token: in each form.
    """

    cookie: str
    token: str = field(default_factory=_new_token)
    ticket: str | None = field(default_factory=_new_token)
    form_token: str = field(default_factory=_new_token)

    def may_enter(self, given: str) -> bool:
        """Whether a token or ticket opens a session; a ticket is used up."""
        if self.ticket and _is_equal(given, self.ticket):
            self.ticket = None
            return True
        return _is_equal(given, self.token)

    def has_entered(self, request: HTTPConnection) -> bool:
        """Whether a request has the cookie."""
        return _is_equal(request.cookies.get(self.cookie, ""), self.token)

    async def read_form(self, request: Request) -> dict[str, list[str]]:
        """Returns the fields of a form of this server.

        Raises:
          HTTPException: it is too large or malformed, or comes from elsewhere.
        """
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_FORM_BYTES:
                raise HTTPException(413, "the form is too large")
        form = parse_qs(body.decode(errors="replace"))
        if any("\0" in value for values in form.values() for value in values):
            raise HTTPException(400, "no command can have such an argument")
        if not _is_equal(form.get(FORM_TOKEN, [""])[0], self.form_token):
            raise HTTPException(403, "the form is of an earlier start of the server")
        return form


class Guard:
    """ASGI middleware: lets requests of the session through and sets the headers."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app = app
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(Request(scope)) or self._app
        await answer(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """Returns the answer to a request that the server does not get to see."""
        host = request.headers.get("host", "")
        if not _HOST.fullmatch(host):
            return PlainTextResponse("unknown host\n", 421)
        if not _is_from_here(request, f"http://{host}"):
            return PlainTextResponse("a request of another site\n", 403)
        if request.url.path == "/favicon.ico":
            # Of pages without a head, such as a log.
            return Response(status_code=204)
        if request.url.path == LOGIN and request.method == "GET":
            return self._log_in(request)
        if self._session.has_entered(request):
            return None
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            # By a link; what is from here otherwise was refused above.
            query = request.url.query
            path = quote(request.url.path) + (f"?{query}" if query else "")
            return _open(f"http://{host}{path}")
        return PlainTextResponse(_NO_TOKEN, 401)

    def _log_in(self, request: Request) -> Response:
        if not self._session.may_enter(request.query_params.get("token", "")):
            return PlainTextResponse(f"wrong token: {_NO_TOKEN}", 401)
        response = _open(f"http://{request.headers['host']}/")
        response.set_cookie(
            self._session.cookie, self._session.token, httponly=True, samesite="strict"
        )
        return response


def _open(url: str) -> Response:
    """Returns a page that opens another one of this server.

    A redirect would still count as sent by the site with the link, such as a terminal
    in the browser or a report in its sandbox, and has no cookie, which is
    ``SameSite=Strict``.
    """
    shown = escape(url)
    return HTMLResponse(
        '<!doctype html><title>Sluice</title><link rel="icon" href="data:,">'
        f'<meta http-equiv="refresh" content="0; url={shown}">'
        f'<a href="{shown}">Sluice</a>'
    )


def _is_from_here(request: Request, own: str) -> bool:
    """Whether the sender is a page of this server, or for a GET, the user.

    Another port of this host is another site here, although a cookie is sent with its
    requests: it may be the server of another user.
    """
    headers = request.headers
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if request.method in ("GET", "HEAD"):
        opened = headers.get("sec-fetch-mode") == "navigate"
        return opened or (
            site in (None, "same-origin", "none") and origin in (None, own)
        )
    return origin == own and site in (None, "same-origin")


def _is_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())
