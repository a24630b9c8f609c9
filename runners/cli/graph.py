"""``sluice graph NAME``: the pipeline's graph as text, Mermaid or SVG."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.config.config import Config
from reports.graph_mermaid import as_mermaid
from reports.graph_svg import as_svg
from reports.graph_text import as_text
from runners.cli.console import make_console
from runners.cli.options import (
    config_options,
    validated_config,
    workspace_of,
    workspace_option,
)
from runners.cli.say import say
from runners.local.graph_file import GraphFile
from runners.local.job_result import PREPARE
from runners.local.processes.job import Job
from runners.local.query_job import query_job, question_folder
from sluice.errors import UsageError
from sluice.graph import GraphNode
from sluice.storage import atomic
from sluice.storage.destination import destination
from sluice.workspace import Workspace

_FORMATS = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".txt": "text"}


@click.command()
@config_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "svg"]),
    help="Default: by the name of the output file, else text.",
)
@click.option("--output", "-o", metavar="FILE", help="Write it there.")
@workspace_option
def graph(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    form: str | None,
    output: str | None,
    workspace_dir: str | None,
) -> None:
    """Draw the graph of the pipeline NAME."""
    config = validated_config(name, profile, overrides)
    file = destination(output, Path.cwd(), "--output") if output else None
    form = form or _FORMATS.get(file.suffix if file else ".txt", "text")
    console = make_console()
    nodes = graph_of(config, workspace_of(config, workspace_dir))
    if form == "svg":
        text = as_svg(nodes)
    elif form == "mermaid":
        text = as_mermaid(nodes)
    else:
        text = as_text(nodes, width=console.width if file is None else None)
    if file is None:
        say(*text.split("\n"))
        return
    try:
        atomic.write_text(file, text + "\n")
    except OSError as error:
        raise UsageError(
            "the graph cannot be written", where=file, actual=error.strerror
        ) from error
    say(f"wrote {output}")


def graph_of(config: Config, workspace: Workspace) -> list[GraphNode]:
    """Returns the nodes of a pipeline, compiled in a process of its own."""
    with question_folder(config) as run_dir:
        job = Job(
            function="runners.local.prepare_job:prepare",
            arguments={
                "run_dir": str(run_dir),
                "workspace": str(workspace.root),
                "from_nodes": [],
                "to_nodes": [],
                "base_run_id": None,
            },
            log=str(run_dir / "logs" / "graph.log"),
        )
        query_job(job, run_dir, PREPARE, cwd=config.root)
        compiled = GraphFile.load(run_dir)
    assert compiled is not None
    return [
        GraphNode(node.id, node.kind, node.upstream, node.gate)
        for node in compiled.nodes
    ]
