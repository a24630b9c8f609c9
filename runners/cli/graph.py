"""``sluice graph NAME``: the pipeline's graph as text."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from pipeline.config.config import Config
from reports.draw_graph import as_text
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, verb
from runners.operations.compile import compile_graph


@verb()
@config_argument
def command(config: Config) -> Result:
    """Show the graph of the pipeline NAME; its page draws it."""
    nodes = compile_graph(config)
    facts = {"pipeline": config.name, "nodes": [asdict(node) for node in nodes]}
    return Result(facts, partial(echo, *as_text(nodes).split("\n")))
