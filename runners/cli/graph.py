"""``sluice graph NAME``: the pipeline's graph as text or SVG."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from pipeline.config.config import Config
from reports.draw_graph import as_svg, as_text
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.operations.compile import compile_graph
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
