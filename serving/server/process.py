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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from serving.server.core import Core
from serving.server.grpc_service import add_services
from serving.server.models import StoreWatch
from serving.server.rest import Rest
from sluice.errors import UsageError


@dataclass(frozen=True)
class Address:
    """Where a server listens; port 0 is any free one."""

    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int = 8500


def make_app(core: Core) -> Starlette:
    """Returns the application behind the HTTP port."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        if core.is_ready:
            return PlainTextResponse("ok\n")
        return PlainTextResponse("not every model has a version to serve\n", 503)

    return Starlette(
        routes=[
            Route("/v1/{path:path}", Rest(core)),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
        ]
    )


def run(
    core: Core,
    address: Address,
    on_ready: Callable[[int, int], None],
    watches: Sequence[StoreWatch] = (),
) -> None:
    """Serves until SIGTERM or SIGINT, then ends the process with 0.

    Args:
      core: with models, of which some may have no version yet.
      address: where to listen.
      on_ready: called with the port and the port of gRPC, once both accept requests.
      watches: of stores, from which versions are loaded first.

    Raises:
      UsageError: a port cannot be used.
    """
    import uvloop

    listener = _listen(address)
    # uvicorn raises the signal again at its end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(core, address, listener, on_ready, watches))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def _serve(
    core: Core,
    address: Address,
    listener: socket.socket,
    on_ready: Callable[[int, int], None],
    watches: Sequence[StoreWatch],
) -> None:
    limits = core.limits
    options = [("grpc.max_receive_message_length", limits.body_bytes)]
    grpc_server = grpc.aio.server(options=[*options, ("grpc.so_reuseport", 0)])
    add_services(grpc_server, core)
    grpc_address = f"{address.host}:{address.grpc_port}"
    try:
        grpc_port = grpc_server.add_insecure_port(grpc_address)
    except RuntimeError:
        raise _unusable(grpc_address, None) from None
    await asyncio.gather(*(watch.refresh() for watch in watches))
    config = uvicorn.Config(
        make_app(core),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
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
    await grpc_server.stop(limits.seconds)


def _listen(address: Address) -> socket.socket:
    try:
        return socket.create_server((address.host, address.port), backlog=2048)
    except OSError as error:
        raise _unusable(f"{address.host}:{address.port}", error) from error


def _unusable(address: str, error: OSError | None) -> UsageError:
    return UsageError(
        f"{address} cannot be used to listen",
        actual=os.strerror(error.errno or 0) if error else None,
        hint="choose another port; 0 is any free one",
    )
