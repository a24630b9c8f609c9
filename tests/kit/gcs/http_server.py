"""HTTP server of the emulators, which is a proxy for ``https://`` to Google too.

A client that knows no other address than ``https://storage.googleapis.com`` is given
this server as its proxy and the certificate of ``certificate.py`` as its authority: the
server answers ``CONNECT`` for these hosts itself. Every other host is refused, so that
nothing leaves the machine.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOSTS = ("storage.googleapis.com", "www.googleapis.com", "oauth2.googleapis.com")


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
      method: such as "GET".
      url: path and query, as sent.
      headers: by lower-case name.
      body: empty if there is none.
      server: scheme and host that the client believes to talk to.
    """

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    server: str = ""


@dataclass(frozen=True)
class Response:
    """A response; one that is cut ends the connection after half of its body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


def error_response(status: int, message: str) -> Response:
    """Returns an error as Google's services write it."""
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    return Response(status, body, {"Content-Type": "application/json; charset=UTF-8"})


def json_response(value: object) -> Response:
    """Returns a value as JSON."""
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return Response(200, json.dumps(value).encode(), headers)


class Server(ThreadingHTTPServer):
    """HTTP on a free port of this machine; each connection is a thread.

    Args:
      respond: answers a request.
      tls: the certificate as which it answers to ``CONNECT``; None for no proxy.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, respond: Callable[[Request], Response], tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond
        self.tls = tls

    @property
    def address(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server
    scheme = "http"
    # Sends a response as one packet without delay; otherwise each takes 40 ms more.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()  # curl would wait for a second.
        return True

    def do_CONNECT(self) -> None:
        if self.server.tls is None or self.path.partition(":")[0] not in HOSTS:
            self._send(error_response(403, f"{self.path} is not emulated"))
            return
        self.send_response_only(HTTPStatus.OK, "Connection established")
        self.end_headers()
        self.wfile.flush()
        try:
            self.connection = self.server.tls.wrap_socket(
                self.connection, server_side=True
            )
        except OSError:  # Such as a client that does not trust the certificate.
            self.close_connection = True
            return
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb")
        self.scheme = "https"
        self.close_connection = False

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.connection.close()

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(headers.get("content-length", 0)))
        server = f"{self.scheme}://{headers.get('host', '')}"
        self._send(
            self.server.respond(Request(self.command, self.path, headers, body, server))
        )

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # A trailer.

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if response.is_cut:
            self.wfile.write(response.body[: len(response.body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(response.body)
        self.wfile.flush()

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _handle
