"""``sluice ui``: a local web server over the project's workspaces."""

from __future__ import annotations

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import verb, wants_json
from runners.ui.server import serve

_PORT = 8265


@verb()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="The port of 127.0.0.1; 0 for any free one.",
)
def command(port: int) -> None:
    """Show all pipelines and runs in the browser, on this machine only.

    The address that is printed contains a token: whoever has it can read all of it. It
    is valid until Ctrl-C, which ends the server; runs go on.
    """
    is_json = wants_json()

    def on_ready(url: str, token: str) -> None:
        if is_json:
            echo_json({"schema_version": 1, "url": url, "token": token})
        else:
            echo(url)
            echo("Ctrl-C ends it", err=True)

    serve(port, on_ready)
