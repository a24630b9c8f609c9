"""The local server in a thread of the test, and a client that can send anything."""

from __future__ import annotations

import http.client
import importlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from runners.ui.app import make_app
from runners.ui.child_processes import ChildProcesses
from runners.ui.guard import FORM_TOKEN, Session
from runners.ui.project import Project


@dataclass
class Answer:
    """A response with its whole body."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Client:
    """Sends requests as a browser of the session does, unless told otherwise."""

    port: int
    session: Session
    children: ChildProcesses | None
    server: uvicorn.Server
    thread: threading.Thread
    connections: list[http.client.HTTPConnection] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": f"{self.session.cookie}={self.session.token}",
        }

    def send(
        self, method: str, path: str, body: str = "", /, **headers: str | None
    ) -> http.client.HTTPResponse:
        """Sends a request; a header None is left out, ``_`` stands for a dash."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connections.append(connection)
        connection.putrequest(method, path, skip_host=True)
        for name, value in {**self.headers, **named}.items():
            if value is not None:
                connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode())
        return connection.getresponse()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self._answer(self.send("GET", path, **headers))

    def post(
        self,
        path: str,
        fields: dict[str, str | list[str]] | None = None,
        **headers: str | None,
    ) -> Answer:
        """Posts a form as a page of the server does."""
        form = {FORM_TOKEN: self.session.form_token, **(fields or {})}
        own = {"Origin": self.origin, "Sec_Fetch_Site": "same-origin"}
        body = urlencode(form, doseq=True)
        return self._answer(self.send("POST", path, body, **{**own, **headers}))

    def events(self, path: str) -> Iterator[tuple[str, str]]:
        """Yields the name and text of each server-sent event of a page."""
        response = self.send("GET", path, Accept="text/event-stream")
        assert response.headers["Content-Type"].startswith("text/event-stream")
        name = ""
        for line in map(bytes.decode, response):
            key, _, value = line.rstrip("\n").partition(": ")
            if key == "event":
                name = value
            elif key == "data":
                yield name, json.loads(value)

    def stop(self) -> None:
        """Ends the server, as SIGTERM does."""
        self.server.should_exit = True
        self.thread.join()
        if self.children:
            self.children.close()

    @staticmethod
    def _answer(response: http.client.HTTPResponse) -> Answer:
        text = response.read().decode()
        return Answer(response.status, dict(response.headers), text)


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a failed run of digits; the current directory is its project."""
    root = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("SLUICE_WORKSPACE", raising=False)
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        runs = importlib.import_module("written_runs").WrittenRuns(root)
        yield runs.fail(runs.FIRST)


@pytest.fixture(scope="module")
def serve_ui() -> Iterator[Callable[..., Client]]:
    """Serves the project in the current directory: ``(read_only=False, **options)``."""
    clients: list[Client] = []

    def serve_ui(*, read_only: bool = False, **options: Any) -> Client:
        children = None if read_only else ChildProcesses()
        session = Session("sluice_ui")
        server: uvicorn.Server
        app = make_app(
            Project(**options), session, children, lambda: server.should_exit
        )
        config = uvicorn.Config(app, port=0, log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        clients.append(Client(port, session, children, server, thread))
        return clients[-1]

    yield serve_ui
    for client in clients:
        for connection in client.connections:
            connection.close()
        client.stop()
