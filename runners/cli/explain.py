"""``sluice explain NAME NODE``: explains whether a node would run, and why."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pipeline.config.config import Config
from runners.cli.options import Result, config_argument, verb
from runners.cli.rich_console import make_console, say
from runners.operations.explain import explain_node
from sluice.errors import bounded

# Lines of a node; --json has all.
_MAX_LINES = 12


@verb()
@config_argument
@click.argument("node")
def command(config: Config, node: str) -> Result:
    """Explain whether NODE of the pipeline NAME would run now, and why.

    Nothing is run or changed. Takes some seconds, since TFX is imported.
    """
    nodes = explain_node(config, node)
    facts = {"pipeline": config.name, "nodes": nodes}
    return Result(facts, partial(_print_explanation, nodes, node))


def _print_explanation(nodes: list[dict[str, Any]], node: str) -> None:
    console = make_console()
    asked = next(explained for explained in nodes if explained["node"] == node)
    verdict = "would run" if asked["would_run"] else "would not run"
    style = "yellow" if asked["would_run"] else "cyan"
    say(console, f"{node} {verdict}", f"bold {style}")
    if asked["last_run"]:
        say(console, f"  since run {asked['last_run']}:")
    lines = [f"{name} would run before it" for name in asked["waits_for"]]
    lines += asked["because"]
    for line in bounded(lines, _MAX_LINES) or ["nothing that it reads has changed"]:
        say(console, f"  {line}")
    for explained in nodes:
        if explained is asked or not (explained["would_run"] and explained["because"]):
            continue
        since = f" (since run {explained['last_run']})" if explained["last_run"] else ""
        say(console, f"{explained['node']} would run{since}", "yellow")
        for line in bounded(explained["because"], _MAX_LINES):
            say(console, f"  {line}")
