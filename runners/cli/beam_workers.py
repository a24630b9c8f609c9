"""``sluice beam-workers``: the worker pool of one machine, for an engine of Beam."""

from __future__ import annotations

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import verb, wants_json


@verb()
@click.option("--port", type=click.IntRange(1, 65535), default=50000, show_default=True)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at. Who can reach it can run code on this machine.",
)
def command(host: str, port: int) -> None:
    """Run the workers of an engine's pipelines on this machine, until Ctrl-C.

    Each machine of a Flink cluster needs one; see docs/cluster.md.
    """
    is_json = wants_json()
    from sluice.compat import prepare_environment

    prepare_environment()
    from pipeline.graph.node_registry import modules_to_preload
    from sluice.worker_pool import serve

    address = f"{host}:{port}"
    modules = ["tfx.components", *modules_to_preload()]

    def on_ready() -> None:
        if is_json:
            echo_json({"schema_version": 1, "address": address})
        else:
            echo(f"workers are ready at {address}")

    serve(address, modules, on_ready)
