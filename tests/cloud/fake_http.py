"""HTTP server of the fake Google Cloud Storage, and its responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Response:
    """A response; one that is cut ends the connection after half of its body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


def error_response(status: int, message: str) -> Response:
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    return Response(status, body, {"Content-Type": "application/json; charset=UTF-8"})


def json_response(value: object) -> Response:
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return Response(200, json.dumps(value).encode(), headers)


class Server(ThreadingHTTPServer):
    """HTTP on a port; each connection is a thread."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        respond: Callable[[str, str, dict[str, str], bytes], Response],
    ) -> None:
        super().__init__(address, _Handler)
        self.respond = respond


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server
    # Sends a response as one packet without delay; otherwise each takes 40 ms more.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        response = self.server.respond(self.command, self.path, headers, body)
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

    do_GET = do_PUT = do_POST = do_DELETE = _handle
