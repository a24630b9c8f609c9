"""``sluice explain NAME NODE``: whether a node would run, and what has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeline.graph.check_inputs import check_inputs
from runners.cli.console import make_console, plain
from runners.cli.options import (
    config_options,
    json_option,
    validated_config,
    workspace_of,
    workspace_option,
)
from runners.cli.say import say_json
from runners.local.processes.job import Job
from runners.local.query_job import query_job, question_folder
from runners.metadata.metadata_file import copy_metadata
from sluice.errors import bounded
from sluice.storage import stat_cache
from sluice.workspace import Workspace

# Of a node; --json has all.
_SHOWN = 40


@click.command()
@config_options
@click.argument("node")
@workspace_option
@json_option
def explain(
    name: str,
    profile: str | None,
    overrides: tuple[str, ...],
    node: str,
    workspace_dir: str | None,
    as_json: bool,
) -> None:
    """Say whether NODE of the pipeline NAME would run now, and why.

    Nothing is run and nothing is changed. Takes as long as importing TFX does.
    """
    config = validated_config(name, profile, overrides)
    check_inputs(config)
    workspace = workspace_of(config, workspace_dir)
    with question_folder(config) as run_dir:
        answers = _ask(workspace, run_dir, config.root, node)
    if as_json:
        document = {"schema_version": 1, "pipeline": config.name, "nodes": answers}
        say_json(document)
        return
    _show(answers, node)


def _ask(
    workspace: Workspace, run_dir: Path, root: Path, node: str
) -> list[dict[str, Any]]:
    copy = run_dir / "metadata.db"
    if workspace.metadata_db.exists():
        copy_metadata(workspace.metadata_db, copy)
    job = Job(
        function="runners.local.explain_job:explain",
        arguments={
            "run_dir": str(run_dir),
            "workspace": str(workspace.root),
            "metadata_copy": str(copy),
            "node_id": node,
        },
        log=str(run_dir / "logs" / "explain.log"),
        environment={stat_cache.DIGESTS_FILE: str(workspace.digests_file)},
    )
    return query_job(job, run_dir, "explain", cwd=root)["nodes"]


def _show(answers: list[dict[str, Any]], node: str) -> None:
    console = make_console()
    asked = next(item for item in answers if item["node"] == node)
    verdict = "would run" if asked["would_run"] else "would not run"
    style = "yellow" if asked["would_run"] else "cyan"
    console.print(plain(f"{node} {verdict}", f"bold {style}"))
    if asked["last_run"]:
        console.print(plain(f"  since run {asked['last_run']}:"))
    lines = [f"{name} would run before it" for name in asked["waits_for"]]
    lines += asked["because"]
    for line in bounded(lines, _SHOWN) or ["nothing that it reads has changed"]:
        console.print(plain(f"  {line}"), soft_wrap=True)
    roots = [item for item in answers if item["because"] and item["would_run"]]
    for item in roots:
        if item is asked:
            continue
        since = f" (since run {item['last_run']})" if item["last_run"] else ""
        console.print(plain(f"{item['node']} would run{since}", "yellow"))
        for line in bounded(item["because"], _SHOWN):
            console.print(plain(f"  {line}"), soft_wrap=True)
