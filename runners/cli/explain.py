"""``sluice explain NAME NODE``: explains whether a node would run, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from runners.cli.echo import echo_json
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.rich_console import make_console, plain, print_line
from runners.operations import explain as operation
from sluice.errors import bounded

# Lines of a node, and names in a line; --json has all.
_MAX_LINES = 12
_MAX_NAMES = 3
_NOUNS = {"file": "files", "code:": "modules"}
_ONE_OF_MANY = re.compile(
    r"(?P<kind>file|code:) (?P<name>.+?):? "
    r"(?P<change>is [^:]+|content changed|changed)"
)


@click.command()
@config_options
@click.argument("node")
@workspace_option
@json_option
def explain(as_json: bool, **asked: Any) -> None:
    """Explain whether NODE of the pipeline NAME would run now, and why.

    Nothing is run or changed. Takes some seconds, since TFX is imported.
    """
    explanation = operation.explain(operation.ExplainRequest(**asked))
    if as_json:
        echo_json(explanation.to_dict())
    else:
        _print_explanation(explanation)


def _print_explanation(explanation: operation.Explanation) -> None:
    console = make_console()
    asked = explanation.asked
    verdict = "would run" if asked["would_run"] else "would not run"
    style = "yellow" if asked["would_run"] else "cyan"
    console.print(plain(f"{asked['node']} {verdict}", f"bold {style}"))
    if asked["last_run"]:
        console.print(plain(f"  since run {asked['last_run']}:"))
    lines = [f"{name} would run before it" for name in asked["waits_for"]]
    lines += _group(asked["because"])
    for line in bounded(lines, _MAX_LINES) or ["nothing that it reads has changed"]:
        print_line(console, f"  {line}")
    if asked["resumes"]:
        console.print(plain(f"  from a checkpoint: {asked['resumes']}"))
    for item in explanation.causes:
        since = f" (since run {item['last_run']})" if item["last_run"] else ""
        console.print(plain(f"{item['node']} would run{since}", "yellow"))
        for line in bounded(_group(item["because"]), _MAX_LINES):
            print_line(console, f"  {line}")


def _group(reasons: Sequence[str]) -> list[str]:
    """Puts files or modules with the same change on one line, if they are many."""
    groups: dict[str, dict[str, str]] = {}
    for reason in reasons:
        found = _ONE_OF_MANY.fullmatch(reason)
        key, name = reason, ""
        if found:
            change = found["change"].removeprefix("is ").removeprefix("content ")
            key, name = f"{_NOUNS[found['kind']]} {change}", found["name"]
        groups.setdefault(key, {})[name] = reason
    lines: list[str] = []
    for key, named in groups.items():
        if len(named) <= _MAX_NAMES:
            lines += named.values()
        else:
            names = ", ".join(bounded(list(named), _MAX_NAMES))
            lines.append(f"{len(named)} {key}: {names}")
    return lines
