"""``sluice models list|retire NAME``: pushed versions and baselines."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import click

from components.baseline_model.blessed_models import (
    RETIRED,
    BlessedModel,
    blessed_models,
    name_of,
    search_baseline,
)
from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cli.echo import echo
from runners.cli.options import Result, config_argument, typed_command, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.metadata.graph import MetadataGraph
from runners.metadata.read_metadata import open_store, read_metadata
from runners.metadata.served_models import find_artifact, served_models
from runners.operations.models import ListedModel, list_models
from runners.operations.pipeline_request import (
    config_words,
    next_command,
    serving_dir_of,
    workspace_of,
)
from serving.model_store import store_at
from serving.store_owner import Owner
from sluice.errors import UsageError


@click.group()
def models() -> None:
    """The models of a pipeline: pushed versions and baselines."""


@verb("list", group=models)
@config_argument
def list_(config: Config) -> Result:
    """List the pushed versions of the pipeline NAME, newest first.

    All their files are read: a version that differs from what was pushed is damaged.
    """
    listed = list_models(config)
    show = partial(_print_versions, listed)
    if not listed:
        command = next_command("run", *config_words(config))
        text = f"no version of {config.name} has been pushed yet; try: {command}"
        show = partial(echo, text)
    return Result([item.to_dict() for item in listed], show)


def _print_versions(listed: list[ListedModel]) -> None:
    columns = ("version", "published", "run", "digest", "state", "path")
    table = make_table(*columns, folded=("path",))
    for item in listed:
        version = item.version
        table.add_row(
            str(version.version),
            (version.published_at or "")[:19],
            str(version.facts.get("pipeline_run_id") or ""),
            (version.digest or "")[:12],
            plain(", ".join(item.flaws) or "ok", "yellow" if item.flaws else ""),
            version.uri,
        )
    console = make_console()
    console.print(table)
    for item in listed:
        for state, why in item.flaws.items():
            text = f"version {item.version.version} is {state}: {why}"
            say(console, text, "yellow")


@verb("retire", group=models)
@click.argument("name")
@click.argument("reference", metavar="VERSION|artifact:ID")
@click.option(
    "--reason", required=True, metavar="TEXT", help="The reason; it is recorded."
)
def retire_(name: str, reference: str, reason: str) -> Result:
    """Retire a blessed model of NAME: it is neither pushed again nor a baseline.

    The baseline is the latest blessed model that is neither missing nor retired. A
    retired model that is served stays served until another is pushed.
    """
    facts = retire(load_config(name), reference, reason, typed_command())
    (retired,) = facts["retired"]
    baseline = f"the next baseline: {facts['baseline'] or 'none'}"
    stays = "where it is served, it stays served until another version is pushed"
    return Result(facts, partial(echo, f"retired: {retired['name']}", baseline, stays))


def retire(config: Config, reference: str, reason: str, command: str) -> dict[str, Any]:
    """Retires a blessed model, so that it is neither pushed again nor a baseline.

    Args:
      config: of the pipeline.
      reference: the model, see ``find_artifact``.
      reason: recorded, and shown in the verdict on the next model.
      command: shown to other commands while this holds the lock.

    Returns:
      What ``--json`` prints, with the name of the next baseline.

    Raises:
      UsageError: the reference is not a blessed model.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
      ServingError: the record of a pushed version cannot be written.
    """
    workspace = workspace_of(config)
    graph = read_metadata(workspace.metadata_db)
    blessed = {item.model.id: item for item in blessed_models(graph.artifacts.values())}
    served = served_models(graph, [serving_dir_of(config), workspace.serving])
    artifact_id, read_as = find_artifact(graph, served, reference)
    if artifact_id not in blessed:
        raise UsageError(
            f"{read_as} is not a blessed model, so it cannot be a baseline",
            where=graph.artifacts[artifact_id].uri,
            examples=[_name(graph, item) for item in blessed.values()] or ["none yet"],
        )
    with (
        workspace.exclusive(command),
        open_store(workspace.metadata_db, writable=True) as store,
    ):
        for item in (x.version for x in served if x.model_id == artifact_id):
            owner = Owner(config.name, workspace.id)
            store_at(os.path.dirname(item.uri)).retire(item.version, reason, owner)
        (artifact,) = store.get_artifacts_by_id([artifact_id])
        artifact.custom_properties[RETIRED].string_value = reason
        store.put_artifacts([artifact])
    retired = blessed.pop(artifact_id)
    usable = (x for x, why in search_baseline(blessed.values()) if why is None)
    baseline = next(usable, None)
    model = {"artifact": artifact_id, "uri": retired.model.uri}
    return {
        "pipeline": config.name,
        "reason": reason,
        "retired": [{**model, "name": _name(graph, retired)}],
        "baseline": _name(graph, baseline) if baseline else None,
    }


def _name(graph: MetadataGraph, model: BlessedModel) -> str:
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, graph.artifacts.values())
