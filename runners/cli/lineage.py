"""``sluice lineage NAME ARTIFACT``: the data, schema, code and run behind it."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from runners.cli.echo import echo_json
from runners.cli.options import json_option, workspace_option
from runners.cli.rich_console import make_console, plain
from runners.metadata.find_artifact import Found
from runners.metadata.trace_lineage import Lineage, Use
from runners.operations import lineage as operation
from sluice.errors import bounded
from sluice.mlmd_items import Artifact

_DIGEST_CHARACTERS = 12
_SHOWN_USES = 12


@click.command()
@click.argument("name")
@click.argument("reference", metavar="ARTIFACT|VERSION")
@workspace_option
@json_option
def lineage(as_json: bool, **asked: Any) -> None:
    """Trace an artifact or a pushed version to its data, schema, code and run.

    ARTIFACT is artifact:ID, an output such as Trainer.model (the newest one), or the
    path or URI of an artifact or of a file in it. VERSION is v3, or 3.
    """
    traced = operation.lineage(operation.LineageRequest(**asked))
    _print_lineage(traced.lineage, traced.found, make_console(to_stderr=as_json))
    if as_json:
        echo_json(traced.to_dict())


def _print_lineage(traced: Lineage, found: Found, console: Console) -> None:
    artifact = traced.artifact
    label = f"{_label(traced, artifact)}  {artifact.type}"
    console.print(plain(label, "bold"))
    console.print(plain(artifact.uri), soft_wrap=True)
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for what, text in [("asked for", found.read_as), *_summary_rows(traced)]:
        table.add_row(what, plain(text))
    console.print(table)
    console.print()
    console.print(plain("made from", "bold"))
    console.print(_make_tree(traced))
    if traced.uses:
        console.print()
        console.print(plain("used by", "bold"))
        lines = [_format_use(traced, use) for use in traced.uses]
        for line in bounded(lines, _SHOWN_USES):
            console.print(plain(line), soft_wrap=True)


def _summary_rows(traced: Lineage) -> list[tuple[str, str]]:
    origin = traced.origin
    rows = [("result", result)] if (result := _outcome(traced.artifact)) else []
    rows.append(("run", origin.run_id or "none"))
    producer = traced.graph.producer(traced.artifact.id)
    if producer is not None:
        ended = _time(producer.ended_at)
        rows.append(("made by", f"{producer.node}, {producer.state} at {ended}"))
    others = [run_id for run_id in origin.run_ids if run_id != origin.run_id]
    if others:
        rows.append(("from runs", ", ".join(bounded(others))))
    if traced.reused_by:
        rows.append(("reused by", ", ".join(bounded(traced.reused_by))))
    for data in origin.data:
        span = "" if data["span"] is None else f"  span {data['span']}"
        rows.append(("data", f"{data['path']}{span}  {_digest(data['fingerprint'])}"))
    for schema in origin.schemas:
        rows.append(("schema", f"{schema['name']}  {_digest(schema['digest'])}"))
    for what, values in (("code", origin.code), ("packages", origin.packages)):
        if values:
            shown = [f"{key} {_values(items)}" for key, items in values.items()]
            rows.append((what, ", ".join(shown)))
    for item in traced.served:
        version, by = item.version, f", by run {item.run_id}" if item.run_id else ""
        since = f", since {_time(version.published_at)}" if version.published_at else ""
        rows.append(("served", f"version {version.version}{since}{by}"))
        rows.append(("", version.uri))
    return rows


def _make_tree(traced: Lineage) -> Tree:
    """Returns a tree of each artifact above its inputs, each drawn once."""
    drawn: set[int] = set()

    def add(branch: Tree, artifact: Artifact) -> None:
        execution = traced.graph.producer(artifact.id)
        if artifact.id in drawn or execution is None:
            return
        drawn.add(artifact.id)
        for key, items in sorted(execution.inputs.items()):
            for item in items:
                child = traced.artifacts[item]
                text = f"{key}: {_label(traced, child)}"
                text += _other_run(traced, child, artifact)
                text += (
                    "  (above)" if item in drawn and _has_inputs(traced, item) else ""
                )
                add(branch.add(plain(text)), child)

    root = Tree(plain(_label(traced, traced.artifact)))
    add(root, traced.artifact)
    return root


def _has_inputs(traced: Lineage, artifact_id: int) -> bool:
    execution = traced.graph.producer(artifact_id)
    return execution is not None and bool(execution.inputs)


def _label(traced: Lineage, artifact: Artifact) -> str:
    state = "" if artifact.state == "live" else f"  ({artifact.state})"
    return f"{traced.graph.name_of(artifact.id)}  artifact:{artifact.id}{state}"


def _other_run(traced: Lineage, artifact: Artifact, made: Artifact) -> str:
    """Names the run that made an input, if another run made the artifact above it."""
    producer = traced.graph.producer(artifact.id)
    run_id = producer.run_id if producer else None
    maker = traced.graph.producer(made.id)
    same = maker is not None and maker.run_id == run_id
    return "" if run_id is None or same else f"  run {run_id}"


def _format_use(traced: Lineage, use: Use) -> str:
    outputs = [traced.graph.artifacts[item] for item in use.artifact_ids]
    labels = [_label(traced, item).removeprefix(f"{use.node}.") for item in outputs]
    made = [
        f"{label}  {_outcome(item)}".rstrip()
        for label, item in zip(labels, outputs, strict=True)
    ]
    return f"{use.node}, {use.key}: {', '.join(made) or 'no output'}"


def _outcome(artifact: Artifact) -> str:
    """Returns what a verdict, blessing or push decided; empty for other artifacts."""
    properties = artifact.properties
    if artifact.type == "ModelBlessing" and "blessed" in properties:
        return "blessed" if properties["blessed"] == 1 else "not blessed"
    if "passed" in properties:
        return "passed" if properties["passed"] == 1 else "not passed"
    if artifact.type == "PushedModel":
        version = properties.get("pushed_version")
        return f"pushed as version {version}" if version else "not pushed"
    return ""


def _time(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"


def _values(items: list[Any]) -> str:
    return " or ".join(map(_digest, items))


def _digest(digest: Any) -> str:
    if isinstance(digest, dict):
        return f"{len(digest)} module" + ("s" if len(digest) != 1 else "")
    text = "" if digest is None else str(digest)
    return text.removeprefix("sha256:")[:_DIGEST_CHARACTERS]
