"""The pushed versions of a pipeline: listed, retired, published again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from components.baseline_model.blessed_models import (
    RETIRED,
    BlessedModel,
    blessed_models,
    name_of,
    search_baseline,
)
from pipeline.config.config import Config
from runners.metadata.read_metadata import (
    MetadataGraph,
    change_artifacts,
    read_metadata,
)
from runners.metadata.trace_lineage import find_artifact, served_models
from runners.operations.find_run import (
    published_in,
    serving_dir_of,
    workspace_of,
)
from serving.model_store import ROLLBACK, ModelVersion, store_at
from serving.store_owner import Owner
from sluice.errors import UsageError
from sluice.workspace import Workspace


@dataclass(frozen=True)
class ListedModel:
    """A pushed version.

    Attributes:
      version: its entry in the model store.
      damage: how its files differ from what was pushed; None if they do not.
    """

    version: ModelVersion
    damage: str | None

    @property
    def flaws(self) -> dict[str, str]:
        """The reasons why it is ``damaged``, ``unrecorded`` or ``retired``."""
        damaged = "damaged" if self.version.digest else "unrecorded"
        flaws = {damaged: self.damage, "retired": self.version.retired}
        return {state: why for state, why in flaws.items() if why}

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        version = asdict(self.version)
        del version["generations"]
        return {**version, "damage": self.damage}


def list_models(config: Config) -> list[ListedModel]:
    """Returns the pushed versions of a pipeline, newest first; reads all their bytes.

    Raises:
      ServingError: the serving directory cannot be read; RemoteError if it is in a
        bucket.
    """
    versions = store_at(published_in(config)).versions()[::-1]
    return [ListedModel(item, item.difference()) for item in versions]


def retire(
    config: Config,
    reference: str,
    reason: str,
    command: str = "runners.operations.models",
) -> dict[str, Any]:
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
    with workspace.exclusive(command):
        owner = Owner(config.name, workspace.id)
        for pushed in (
            model.version for model in served if model.model_id == artifact_id
        ):
            store_at(os.path.dirname(pushed.uri)).retire(pushed.version, reason, owner)
        _retire_artifacts(workspace, [artifact_id], reason)
    retired = blessed.pop(artifact_id)
    return {
        "pipeline": config.name,
        "reason": reason,
        "retired": [_described(graph, retired)],
        "baseline": _next_baseline(graph, blessed.values()),
    }


def rollback(
    config: Config,
    number: int | None,
    reason: str,
    command: str = "runners.operations.models",
    *,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Publishes an earlier version again, and retires the models after it.

    The models are retired first: a call that was killed can be made again, and does
    the rest.

    Args:
      config: of the pipeline.
      number: of the version; None for the newest one before the served version that is
        another model, intact and not retired.
      reason: recorded with the new version and the retired models.
      command: shown to other commands while this holds the lock.
      dry_run: change nothing.

    Returns:
      What ``--json`` prints; ``published`` is the new version, None of a dry run.

    Raises:
      UsageError: there is no such version, or it is damaged, retired or served.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
      ServingError: the model store cannot be written.
    """
    workspace = workspace_of(config)
    store = store_at(published_in(config))
    workspace.prepare()
    with workspace.exclusive(command):
        versions = store.versions()
        chosen = _version_to_serve(versions, number, store.uri)
        withdrawn = _later_models(versions, chosen)
        graph = read_metadata(workspace.metadata_db)
        ids = {item.uri: key for key, item in graph.artifacts.items()}
        first = ids.get(chosen.facts.get("model_uri", ""))
        bad = {ids.get(x.facts.get("model_uri", "")) for x in withdrawn} - {first}
        blessed = blessed_models(graph.artifacts.values())
        later = [
            x
            for x in blessed
            if x.model.id in bad or (first is not None and x.model.id > first)
        ]
        published = None
        if not dry_run:
            owner = Owner(config.name, workspace.id)
            for version in withdrawn:
                if version.retired is None:
                    store.retire(version.version, reason, owner)
            new = [item.model.id for item in later if item.retired is None]
            _retire_artifacts(workspace, new, reason)
            about = {
                "version": chosen.version,
                "published_at": chosen.first_published_at,
                "reason": reason,
            }
            facts = {**chosen.facts, ROLLBACK: about}
            published = store.publish(chosen.uri, facts=facts, owner=owner).version
    kept = [item for item in blessed if item not in later]
    return {
        "pipeline": config.name,
        "reason": reason,
        "version": chosen.version,
        "from": versions[-1].version,
        "published": published,
        "withdrawn": [version.version for version in withdrawn],
        "retired": [_described(graph, item) for item in later],
        "baseline": _next_baseline(graph, kept),
    }


def _version_to_serve(
    versions: list[ModelVersion], number: int | None, where: str
) -> ModelVersion:
    """Returns the version to publish again; see ``rollback``."""
    served = versions[-1] if versions else None
    others = [x for x in versions if served and x.digest not in (None, served.digest)]
    flaws = {item.version: _flaw(item) for item in others}
    usable = [item for item in others if not flaws[item.version]]
    chosen = [x for x in usable if number in (None, x.version)]
    if chosen:
        return chosen[-1]
    what = "there is no version to go back to"
    if number is not None:
        flaw = flaws.get(number) or (
            "it is the model that is served"
            if number in [item.version for item in versions]
            else "there is no such version"
        )
        what = f"version {number} cannot be published again: {flaw}"
    numbers = [str(item.version) for item in usable]
    raise UsageError(what, where=where, examples=numbers or ["none"])


def _later_models(
    versions: list[ModelVersion], chosen: ModelVersion
) -> list[ModelVersion]:
    """Returns the versions of the models that were pushed after a version.

    Also earlier versions of them: a run may push such a model again from the cache.
    """

    def keys(version: ModelVersion) -> set[str]:
        return {version.digest or "", version.facts.get("model_uri", "")} - {""}

    others = [x for x in versions if x.digest not in (None, chosen.digest)]
    later = {key for x in others if x.version > chosen.version for key in keys(x)}
    return [x for x in others if keys(x) & (later - keys(chosen))]


def _flaw(version: ModelVersion) -> str | None:
    """Returns why a version cannot be published again; None if it can."""
    if version.retired is not None:
        return f"it is retired: {version.retired}"
    damage = version.difference()
    return f"it is damaged: {damage}" if damage else None


def _retire_artifacts(
    workspace: Workspace, artifact_ids: Sequence[int], reason: str
) -> None:
    def retire_artifact(artifact: Any) -> None:
        artifact.custom_properties[RETIRED].string_value = reason

    change_artifacts(workspace.metadata_db, artifact_ids, retire_artifact)


def _described(graph: MetadataGraph, model: BlessedModel) -> dict[str, Any]:
    name = _name(graph, model)
    return {"artifact": model.model.id, "uri": model.model.uri, "name": name}


def _next_baseline(graph: MetadataGraph, blessed: Iterable[BlessedModel]) -> str | None:
    """Returns the name of the model that the next one is compared with, if any."""
    searched = search_baseline(blessed)
    found = (_name(graph, candidate) for candidate, why in searched if why is None)
    return next(found, None)


def _name(graph: MetadataGraph, model: BlessedModel) -> str:
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, graph.artifacts.values())
