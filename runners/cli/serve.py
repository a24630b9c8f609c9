"""``sluice serve NAME...``: a server of pushed models."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import Result, verb, wants_json
from runners.operations.print_server import server_text
from runners.operations.serve import ServeOptions, serve
from sluice.errors import UsageError

_PORT = click.IntRange(0, 65535)


def _option(name: str, default: Any, kind: Any, text: str) -> Any:
    return click.option(name, default=default, type=kind, show_default=True, help=text)


@verb()
@click.argument("names", nargs=-1, required=True)
@click.option("--profile", help="Use this profile of the configs.")
@_option("--host", "127.0.0.1", str, "The address to listen at; 0.0.0.0 for all.")
@_option("--port", 8501, _PORT, "The port of REST and the page; 0 for any free one.")
@_option("--grpc-port", 8500, _PORT, "The port of gRPC; 0 for any free one.")
@_option("--batch-rows", 64, click.IntRange(1), "Rows to compute at once, at most.")
@_option("--batch-delay-ms", 0.0, float, "How long a request waits for others.")
@_option("--max-body-mb", 64, click.IntRange(1), "Refuse larger requests.")
@_option("--max-rows", 10_000, click.IntRange(1), "Refuse requests with more rows.")
@_option("--timeout-s", 30.0, float, "For a body to arrive, and a model to answer.")
@_option("--poll-s", 2.0, float, "How often to look for a new version.")
@_option("--record", 0.0, click.FloatRange(0, 1), "Record this share of the requests.")
@_option("--record-mb", 1024, click.IntRange(1), "Delete the oldest records above it.")
@click.option(
    "form",
    "--print",
    type=click.Choice(("compose", "kubernetes")),
    help="Print what runs a TensorFlow Serving of NAME instead.",
)
@click.option("--image", help="For --print: the image; default: serving_check.server.")
@click.option("--claim", help="For kubernetes: the volume of the project.")
def command(
    names: tuple[str, ...],
    profile: str | None,
    form: str | None,
    image: str | None,
    claim: str | None,
    **options: Any,
) -> Result | None:
    """Serve the pushed models of NAME... as TensorFlow Serving does.

    REST, gRPC, and a page to try them in a browser. A version is loaded only if it is
    byte for byte what was pushed; a new one takes its place while requests go on, and
    the old one stays if the new one does not load. SIGTERM or Ctrl-C finishes what is
    under way.
    """
    from pipeline.config.load import load_config

    is_json = wants_json()

    def on_ready(port: int, grpc_port: int, versions: dict[str, int]) -> None:
        if is_json:
            ports = {"schema_version": 1, "port": port, "grpc_port": grpc_port}
            return echo_json({**ports, "versions": versions})
        for name, version in versions.items():
            served = f"version {version}" if version else "no version yet"
            echo(f"{name}: {served}")
        host = options["host"]
        echo(f"REST and page: http://{host}:{port}   gRPC: {host}:{grpc_port}")
        echo("Ctrl-C ends it", err=True)

    configs = [load_config(name, profile=profile) for name in dict.fromkeys(names)]
    if form:
        if len(configs) > 1:
            raise UsageError("a server of one pipeline is printed", where="--print")
        text = server_text(configs[0], form, ServeOptions(**options), image, claim)
        return Result({"as": form, "text": text}, partial(echo, *text.splitlines()))
    serve(configs, ServeOptions(**options), on_ready)
    return None
