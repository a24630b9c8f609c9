"""Starts the server on a port of 127.0.0.1; it stops on SIGINT and SIGTERM."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

import uvicorn

from runners.operations.pipeline_request import next_command
from runners.ui.app import make_app
from runners.ui.child_processes import ChildProcesses
from runners.ui.guard import LOGIN, Session
from runners.ui.project import Project
from sluice.errors import ExitCode, UsageError

ADDRESS = "127.0.0.1"
# Streams end by themselves when the server stops; this is for slow pages.
_STOP_S = 3


@dataclass(frozen=True, kw_only=True)
class UiRequest:
    """Request to serve the project's workspaces.

    Attributes:
      port: of 127.0.0.1; 0 for any free one.
      read_only: whether nothing can be changed.
      workspace_dir: as for ``PipelineRequest``.
    """

    port: int
    read_only: bool = False
    workspace_dir: str | None = None


@dataclass(frozen=True)
class Serving:
    """A server that accepts connections."""

    port: int
    session: Session

    def login_url(self, token: str) -> str:
        """Returns the address that opens a session, with a token or ticket."""
        return f"http://{ADDRESS}:{self.port}{LOGIN}?token={token}"


def serve(request: UiRequest, on_ready: Callable[[Serving], None]) -> None:
    """Serves until SIGINT or SIGTERM; then no process that it tied to itself is left.

    Args:
      request: what to serve.
      on_ready: called once connections are accepted.

    Raises:
      UsageError: the port cannot be used.
    """
    with (
        suppress(KeyboardInterrupt),
        _exit_on_sigterm(),
        _listen(request) as listener,
        closing(ChildProcesses()) as children,
    ):
        port = listener.getsockname()[1]
        session = Session(f"sluice_ui_{port}")
        project = Project(request.workspace_dir)
        server: uvicorn.Server
        app = make_app(
            project,
            session,
            None if request.read_only else children,
            is_stopping=lambda: server.should_exit,
        )
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
        )
        server = uvicorn.Server(config)
        on_ready(Serving(port, session))
        server.run(sockets=[listener])


def _listen(request: UiRequest) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, request.port))
        listener.listen()
    except OSError as error:
        listener.close()
        command = next_command("ui", "--port", "0", workspace_dir=request.workspace_dir)
        raise UsageError(
            f"port {request.port} of {ADDRESS} cannot be used",
            actual=error.strerror,
            hint=f"{command}   (any free port)",
        ) from error
    return listener


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Leaves the block's contexts on SIGTERM, which uvicorn raises again at its end."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
