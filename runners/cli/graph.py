"""``sluice graph NAME``: the pipeline's graph as text, Mermaid or SVG."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from pipeline.config.config import Config
from pipeline.graph.arguments import local_locations
from reports.graph import GraphNode, as_mermaid, as_text
from reports.graph_svg import as_svg
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.operations.pipeline_request import validated, workspace_of
from sluice.compat import hidden_native_logs
from sluice.node_kinds import GATES
from sluice.storage.output_path import resolve_output_path, write_output

_FORMATS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".txt": "text"}


@verb()
@config_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "svg"]),
    help="Default: by the extension of the output file, else text.",
)
@click.option("--output", "-o", metavar="FILE", help="Write to FILE.")
def graph(config: Config, form: str | None, output: str | None) -> Result:
    """Draw the graph of the pipeline NAME, or with --json list its nodes."""
    file = resolve_output_path(output, Path.cwd(), "--output") if output else None
    form = form or _FORMATS.get(file.suffix if file else ".txt", "text")
    nodes = compile_graph(config)
    draw = as_svg if form == "svg" else as_mermaid if form == "mermaid" else as_text
    text = draw(nodes)
    show = partial(echo, *text.split("\n"))
    if file is not None:
        write_output(file, f"{text}\n", "graph")
        show = partial(echo, f"wrote {output}")
    return Result({"pipeline": config.name, "nodes": [asdict(x) for x in nodes]}, show)


def compile_graph(config: Config) -> list[GraphNode]:
    """Compiles a pipeline, which imports TFX, and returns its nodes.

    Raises:
      UsageError: the config is invalid.
    """
    config = validated(config)
    with hidden_native_logs():
        from tfx.dsl.compiler.compiler import Compiler

        from pipeline.graph.create_pipeline import create_pipeline
        from runners.local.prepare import nodes_of

        places = local_locations(config, workspace_of(config))
        nodes = nodes_of(Compiler().compile(create_pipeline(config, places)))
    return [GraphNode(x.id, x.kind, tuple(x.upstream), x.kind in GATES) for x in nodes]
