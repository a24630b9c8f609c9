"""``sluice explain NAME NODE``: whether a node would run, and what has changed."""

from __future__ import annotations

from typing import Any

import click

from runners.cli.echo import echo_json
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.rich_console import make_console, plain
from runners.operations import explain as operation
from sluice.errors import bounded

# Of a node; --json has all.
_SHOWN = 40


@click.command()
@config_options
@click.argument("node")
@workspace_option
@json_option
def explain(as_json: bool, **asked: Any) -> None:
    """Say whether NODE of the pipeline NAME would run now, and why.

    Nothing is run and nothing is changed. Takes as long as importing TFX does.
    """
    explanation = operation.explain(operation.ExplainRequest(**asked))
    if as_json:
        echo_json(explanation.to_dict())
    else:
        _show(explanation)


def _show(explanation: operation.Explanation) -> None:
    console = make_console()
    asked = explanation.asked
    verdict = "would run" if asked["would_run"] else "would not run"
    style = "yellow" if asked["would_run"] else "cyan"
    console.print(plain(f"{asked['node']} {verdict}", f"bold {style}"))
    if asked["last_run"]:
        console.print(plain(f"  since run {asked['last_run']}:"))
    lines = [f"{name} would run before it" for name in asked["waits_for"]]
    lines += asked["because"]
    for line in bounded(lines, _SHOWN) or ["nothing that it reads has changed"]:
        console.print(plain(f"  {line}"), soft_wrap=True)
    for item in explanation.causes:
        since = f" (since run {item['last_run']})" if item["last_run"] else ""
        console.print(plain(f"{item['node']} would run{since}", "yellow"))
        for line in bounded(item["because"], _SHOWN):
            console.print(plain(f"  {line}"), soft_wrap=True)
