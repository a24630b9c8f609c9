"""``sluice graph NAME``: the pipeline's graph as text or SVG."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from pipeline.config.config import Config
from pipeline.graph.arguments import local_locations
from reports.draw_graph import GraphNode, as_svg, as_text
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.operations.pipeline_request import validated, workspace_of
from sluice.compat import hidden_native_logs
from sluice.node_kinds import GATES
from sluice.storage.output_path import resolve_output_path, write_output


@verb()
@config_argument
@click.option("--output", "-o", metavar="FILE", help="Write to FILE, such as x.svg.")
def command(config: Config, output: str | None) -> Result:
    """Draw the graph of the pipeline NAME, or with --json list its nodes."""
    file = resolve_output_path(output, Path.cwd(), "--output") if output else None
    nodes = compile_graph(config)
    text = as_svg(nodes) if file and file.suffix == ".svg" else as_text(nodes)
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
