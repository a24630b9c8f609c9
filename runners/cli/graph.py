"""``sluice graph NAME``: the pipeline's graph as text, Mermaid or SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reports.graph_mermaid import as_mermaid
from reports.graph_svg import as_svg
from reports.graph_text import as_text
from runners.cli.echo import echo, echo_json
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.rich_console import make_console
from runners.operations import graph as operation
from runners.operations.pipeline_request import PipelineRequest
from sluice.storage.output_path import resolve_output_path, write_output

_FORMATS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".txt": "text"}


@click.command()
@config_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "svg"]),
    help="Default: by the extension of the output file, else text.",
)
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
@workspace_option
@json_option
def graph(form: str | None, output: str | None, as_json: bool, **asked: Any) -> None:
    """Draw the graph of the pipeline NAME, or with --json list its nodes."""
    file = resolve_output_path(output, Path.cwd(), "--output") if output else None
    form = form or _FORMATS.get(file.suffix if file else ".txt", "text")
    console = make_console()
    drawn = operation.graph(PipelineRequest(**asked))
    if form == "svg":
        text = as_svg(drawn.nodes)
    elif form == "mermaid":
        text = as_mermaid(drawn.nodes)
    else:
        text = as_text(drawn.nodes, width=console.width if file is None else None)
    if file is not None:
        write_output(file, f"{text}\n", "graph")
        echo(f"wrote {output}", err=as_json)
    elif not as_json:
        echo(*text.split("\n"))
    if as_json:
        echo_json(drawn.to_dict())
