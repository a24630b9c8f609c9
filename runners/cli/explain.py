"""``sluice explain NAME NODE``: explains whether a node would run, and why."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from components.tfrecord_gen.input_files import SPANS_FILE, SPANS_PATH
from pipeline.config.config import Config
from pipeline.config.serialize import write_stored_config
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.custom_nodes import check_node_ids
from runners.cli.options import Result, config_argument, verb
from runners.cli.rich_console import make_console, say
from runners.local import processes
from runners.local.graph import Graph
from runners.metadata.metadata_file import copy_metadata
from runners.operations.pipeline_request import validated, workspace_of
from sluice.errors import UsageError, bounded
from sluice.storage import stat_cache

# Lines of a node; --json has all.
_MAX_LINES = 12


@verb()
@config_argument
@click.argument("node")
def explain(config: Config, node: str) -> Result:
    """Explain whether NODE of the pipeline NAME would run now, and why.

    Nothing is run or changed. Takes some seconds, since TFX is imported.
    """
    nodes = explain_node(config, node)
    facts = {"pipeline": config.name, "nodes": nodes}
    return Result(facts, partial(_print_explanation, nodes, node))


def explain_node(config: Config, node: str) -> list[dict[str, Any]]:
    """Returns whether a node and those upstream of it would run, and why.

    A process that imports TFX finds it. Each entry has ``node``, ``would_run``,
    ``because``, ``waits_for`` and ``last_run``; ``resumes`` says where its training
    would go on, None if from the beginning.

    Raises:
      UsageError: the config or its data is invalid, or there is no such node.
      WorkspaceError: the metadata is damaged.
      NodeError: the process failed otherwise.
    """
    config = validated(config)
    check_node_ids(config, [node])
    if config.cloud is not None:
        raise UsageError(
            "a service decides by itself what it caches", hint="without --profile"
        )
    choice, workspace = choose_spans(config), workspace_of(config)
    with processes.temporary_folder() as folder:
        run_dir = Path(folder, "explain")
        run_dir.mkdir()
        write_stored_config(config, run_dir / "config.json")
        (run_dir / SPANS_FILE).write_bytes(choice.to_json())
        if workspace.metadata_db.exists():
            copy_metadata(workspace.metadata_db, run_dir / "metadata.db")
        environment = {
            SPANS_PATH: str(run_dir / SPANS_FILE),
            stat_cache.DIGESTS_FILE: str(workspace.digests_file),
        }
        return processes.call(
            "runners.local.explain_job:explain",
            Graph(run_dir, config.root, workspace.root),
            node,
            log=run_dir / "explain.log",
            around=processes.Surroundings(config.root, Path(folder), environment),
        )


def _print_explanation(nodes: list[dict[str, Any]], node: str) -> None:
    console = make_console()
    asked = next(item for item in nodes if item["node"] == node)
    verdict = "would run" if asked["would_run"] else "would not run"
    style = "yellow" if asked["would_run"] else "cyan"
    say(console, f"{node} {verdict}", f"bold {style}")
    if asked["last_run"]:
        say(console, f"  since run {asked['last_run']}:")
    lines = [f"{name} would run before it" for name in asked["waits_for"]]
    lines += asked["because"]
    for line in bounded(lines, _MAX_LINES) or ["nothing that it reads has changed"]:
        say(console, f"  {line}")
    if asked["resumes"]:
        say(console, f"  from a checkpoint: {asked['resumes']}")
    for item in nodes:
        if item is asked or not (item["would_run"] and item["because"]):
            continue
        since = f" (since run {item['last_run']})" if item["last_run"] else ""
        say(console, f"{item['node']} would run{since}", "yellow")
        for line in bounded(item["because"], _MAX_LINES):
            say(console, f"  {line}")
