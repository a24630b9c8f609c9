"""``sluice lineage NAME ARTIFACT``: the data, schema, code and run behind it."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pipeline.config.load import load_config
from reports import formats
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, say
from runners.operations.lineage import find_lineage
from sluice.errors import bounded

Lineage = dict[str, Any]
_DIGEST_CHARACTERS = 12
_SHOWN_USES = 12


@verb()
@click.argument("name")
@click.argument("reference", metavar="ARTIFACT|VERSION")
def command(name: str, reference: str) -> Result:
    """Trace an artifact or a pushed version to its data, schema, code and run.

    ARTIFACT is artifact:ID, an output such as Trainer.model (the newest one), or the
    path or URI of an artifact or version. VERSION is v3, or 3. The modules of each node
    are in --json only.
    """
    config = load_config(name)
    traced = find_lineage(config, reference)
    facts = {"pipeline": config.name, **traced}
    return Result(facts, partial(_print_lineage, traced))


def _print_lineage(traced: Lineage) -> None:
    console, artifact = make_console(), traced["artifact"]
    say(console, f"{_label(artifact)}  {artifact['type']}", "bold")
    say(console, artifact["uri"])
    say(console)
    for what, text in [("asked for", traced["read_as"]), *_summary_rows(traced)]:
        say(console, f"{what:<18} {text}")
    say(console)
    say(console, "made by", "bold")
    for line in _nodes(traced):
        say(console, line)
    say(console)
    say(console, "used by", "bold")
    uses = [
        f"{use['node']}: {', '.join(map(_label, use['outputs'])) or 'no output'}"
        for use in traced["uses"]
    ]
    for line in bounded(uses, _SHOWN_USES) or ["nothing"]:
        say(console, line)


def _summary_rows(traced: Lineage) -> list[tuple[str, Any]]:
    origin = traced["origin"]
    rows = [*traced["artifact"]["properties"].items()]
    rows.append(("run", origin["run_id"]))
    others = [run_id for run_id in origin["run_ids"] if run_id != origin["run_id"]]
    if others:
        rows.append(("from runs", ", ".join(bounded(others))))
    for data in origin["data"]:
        span = "" if data["span"] is None else f"  span {data['span']}"
        rows.append(("data", f"{data['path']}{span}  {_digest(data['fingerprint'])}"))
    for schema in origin["schemas"]:
        rows.append(("schema", f"{schema['name']}  {_digest(schema['digest'])}"))
    for item in traced["served"]:
        since = f"since {formats.time(item['published_at'])}, by run {item['run_id']}"
        again = f", {item['rollback']}" if item.get("rollback") else ""
        text = f"version {item['version']}{again}, {since}: {item['uri']}"
        rows.append(("served", text))
    return rows


def _nodes(traced: Lineage) -> list[str]:
    """Returns a line for each execution upstream, oldest first, with what it read."""
    labels = {item["id"]: _label(item) for item in traced["artifacts"]}
    lines = []
    for execution in traced["executions"]:
        read = sorted({x for ids in execution["inputs"].values() for x in ids})
        inputs = ", ".join(labels[x] for x in read) or "no input"
        lines.append(f"{execution['node']}, run {execution['run_id']}: {inputs}")
    return lines


def _label(artifact: dict[str, Any]) -> str:
    state = "" if artifact["state"] == "live" else f"  ({artifact['state']})"
    return f"{artifact['name']}  artifact:{artifact['id']}{state}"


def _digest(digest: str | None) -> str:
    return (digest or "").removeprefix("sha256:")[:_DIGEST_CHARACTERS]
