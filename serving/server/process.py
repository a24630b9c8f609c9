"""The process of a server: its ports, and its end.

SIGTERM and SIGINT finish what is under way. The process ends without waiting for
threads: one may hang in a model.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import grpc
import prometheus_client
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from serving.server.core import Core
from serving.server.grpc_service import add_services
from serving.server.models import StoreWatch
from serving.server.page import page_routes
from serving.server.rest import Rest
from sluice.errors import UsageError


@dataclass(frozen=True)
class Address:
    """Where a server listens; port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int = 8500


def make_app(core: Core) -> Callable[..., Awaitable[None]]:
    """Returns the ASGI application behind the HTTP port."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        waiting = [name for name, model in core.models.items() if not model.loaded]
        if waiting:
            return PlainTextResponse(f"no version of {', '.join(waiting)}\n", 503)
        return PlainTextResponse("ok\n")

    async def metrics(request: Request) -> Response:
        kind = prometheus_client.CONTENT_TYPE_LATEST
        return Response(prometheus_client.generate_latest(), media_type=kind)

    rest = Rest(core)
    pages = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            *page_routes(core),
        ]
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's middlewares and routes take as long as all that REST does.
        is_rest = scope["path"].startswith("/v1/")
        await (rest if is_rest else pages)(scope, receive, send)

    return app


def run(
    core: Core,
    address: Address,
    on_ready: Callable[[int, int], None],
    watches: Sequence[StoreWatch] = (),
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or SIGINT, then ends the process with 0.

    Args:
      core: with models, of which some may have no version yet.
      address: where to listen.
      on_ready: called with the port and the port of gRPC, once both accept requests.
      watches: of stores, from which versions are loaded first.
      on_end: called after the last request.

    Raises:
      UsageError: a port cannot be used.
    """
    # uvicorn raises the signal again at its end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(core, address, on_ready, watches))
    on_end()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def _serve(
    core: Core,
    address: Address,
    on_ready: Callable[[int, int], None],
    watches: Sequence[StoreWatch],
) -> None:
    seconds = core.limits.seconds
    options = [("grpc.max_receive_message_length", core.limits.body_bytes)]
    # Otherwise a second server could listen at the same port.
    grpc_server = grpc.aio.server(options=[*options, ("grpc.so_reuseport", 0)])
    add_services(grpc_server, core)
    try:
        listener = socket.create_server((address.host, address.port), backlog=1024)
        grpc_port = grpc_server.add_insecure_port(f"{address.host}:{address.grpc_port}")
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"{address} cannot be used",
            actual=str(error),
            hint="choose others by --port and --grpc-port; 0 is any free one",
        ) from error
    await asyncio.gather(*(watch.refresh() for watch in watches))
    config = uvicorn.Config(
        make_app(core),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(seconds) + 1,
    )
    server = uvicorn.Server(config)
    await grpc_server.start()
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.002)
    watching = [asyncio.ensure_future(watch.run()) for watch in watches]
    on_ready(listener.getsockname()[1], grpc_port)
    await serving
    for task in watching:
        task.cancel()
    await grpc_server.stop(seconds)
