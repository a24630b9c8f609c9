"""Refuses requests from other sites, other users and other host names.

The server acts with the rights of whoever started it, and any page in any browser of
the machine can send requests to it. So a request must have a host name that no DNS
server can point here, and the printed token, or the cookie that it sets (also to read:
data is private on a shared machine). One that changes something must come from a page
of this server.
"""

from __future__ import annotations

import hmac
from functools import partial

from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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
    own = f"http://{request.headers['host']}"
    asked = request.query_params.get("token")
    given = asked or request.cookies.get(cookie, "")
    if request.method not in ("GET", "HEAD") and request.headers.get("origin") != own:
        response = PlainTextResponse("a request of another site\n", 403)
    elif not hmac.compare_digest(given.encode(), token.encode()):
        response = HTMLResponse(_NO_TOKEN, 401)
    else:
        response = await call_next(request)
        if asked:
            response.set_cookie(cookie, token, httponly=True, samesite="strict")
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response
