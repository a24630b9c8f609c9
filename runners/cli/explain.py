"""``sluice explain NAME NODE``: explains whether a node would run, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from runners.cli.echo import echo_json
from runners.cli.options import config_options, json_option, workspace_option
from runners.cli.rich_console import make_console, plain
from runners.operations import explain as operation
from sluice.errors import bounded

# Lines of a node, and names in a line; --json has all.
_MAX_LINES = 12
_MAX_NAMES = 3
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
        console.print(plain(f"  {line}"), soft_wrap=True)
    for item in explanation.causes:
        since = f" (since run {item['last_run']})" if item["last_run"] else ""
        console.print(plain(f"{item['node']} would run{since}", "yellow"))
        for line in bounded(_group(item["because"]), _MAX_LINES):
            console.print(plain(f"  {line}"), soft_wrap=True)


def _group(reasons: Sequence[str]) -> list[str]:
    """Puts files or modules with the same change on one line, if they are many."""
    groups: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        if found := _ONE_OF_MANY.fullmatch(reason):
            groups.setdefault(_change_in(found), []).append(found["name"])
    lines = []
    for reason in reasons:
        found = _ONE_OF_MANY.fullmatch(reason)
        names = groups.get(_change_in(found), []) if found else []
        if not found or len(names) <= _MAX_NAMES:
            lines.append(reason)
        elif found["name"] == names[0]:
            noun, change = _change_in(found)
            shown = ", ".join(bounded(names, _MAX_NAMES))
            lines.append(f"{len(names)} {noun} {change}: {shown}")
    return lines


def _change_in(found: re.Match[str]) -> tuple[str, str]:
    noun = "modules" if found["kind"] == "code:" else "files"
    return noun, found["change"].removeprefix("is ").removeprefix("content ")
