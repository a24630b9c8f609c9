"""``sluice ui``: a local web server over the project's workspaces."""

from __future__ import annotations

import threading
import webbrowser

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import json_option, workspace_option
from runners.ui.serve import Serving, UiRequest, serve

_PORT = 8265


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="The port of 127.0.0.1; 0 for any free one.",
)
@click.option(
    "--read-only", is_flag=True, help="Show only: no button changes anything."
)
@click.option("open_it", "--open", is_flag=True, help="Open it in the browser.")
@workspace_option
@json_option
def ui(
    port: int, read_only: bool, open_it: bool, workspace_dir: str | None, as_json: bool
) -> None:
    """Show all pipelines, runs and models in the browser, on this machine only.

    The address that is printed contains a token: whoever has it may do what the buttons
    do. It is valid until Ctrl-C, which ends the server; runs go on.
    """

    def on_ready(serving: Serving) -> None:
        session = serving.session
        if as_json:
            url = serving.login_url(session.token)
            echo_json({"schema_version": 1, "url": url, "token": session.token})
        else:
            echo(serving.login_url(session.token))
            echo("Ctrl-C ends it", err=True)
        if open_it and session.ticket:
            url = serving.login_url(session.ticket)
            # A browser in the terminal would wait for the server, which begins now.
            threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()

    request = UiRequest(port=port, read_only=read_only, workspace_dir=workspace_dir)
    serve(request, on_ready)
