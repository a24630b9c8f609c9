"""Lists blessed models and selects the baseline among them.

TFX selects the latest blessed model, even if a person has retired it or its files are
gone. Here such a model is skipped, and the next older one is selected.

Where there is no ML Metadata, the model store tells: only blessed models are pushed,
and a version's record has the address of the trained model that it was copied from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from serving.model_store import store_at
from sluice.mlmd_items import Artifact, newest_first
from sluice.storage.storage import storage_for

# Custom property of a Model artifact: a person's reason to retire it.
RETIRED = "sluice_retired"

LOOK_UP, NO_BASELINE = "", "none"
"""Values of the runtime parameter ``baseline``, which otherwise is a version's number.

A run that is pinned to a version does not see the versions of later pushes.
"""


@dataclass(frozen=True)
class BlessedModel:
    """A Model artifact that has been blessed.

    Attributes:
      model: the artifact.
      blessing_id: of the latest blessing that names it.
    """

    model: Artifact
    blessing_id: int

    @property
    def retired(self) -> str | None:
        """A person's reason to retire it; None if it is not retired."""
        return self.model.properties.get(RETIRED)

    def rejection_reason(self) -> str | None:
        """Returns why it cannot be the baseline; None if it can."""
        if self.retired is not None:
            return f"retired: {self.retired}"
        uri = self.model.uri
        return None if storage_for(uri).exists(uri) else f"missing: nothing is at {uri}"


def blessed_models(artifacts: Iterable[Artifact]) -> list[BlessedModel]:
    """Returns the blessed models among the artifacts of a pipeline, newest first."""
    live = [item for item in newest_first(artifacts) if item.state == "live"]
    blessed = {
        item.properties.get("current_model_id"): item.id
        for item in reversed(live)
        if item.type == "ModelBlessing" and item.properties.get("blessed") == 1
    }
    return [
        BlessedModel(item, blessed[item.id])
        for item in live
        if item.type == "Model" and item.id in blessed
    ]


def search_baseline(
    blessed: Iterable[BlessedModel], count: int = 1
) -> Iterator[tuple[BlessedModel, str | None]]:
    """Yields each model and why it cannot be the baseline, until ``count`` can."""
    for model in blessed:
        reason = model.rejection_reason()
        yield model, reason
        count -= reason is None
        if not count:
            return


def name_of(
    model: BlessedModel, run_id: str | None, artifacts: Iterable[Artifact]
) -> str:
    """Returns the display name of a model: its latest version, artifact and run.

    Args:
      model: to name.
      run_id: of the run that trained it; None or empty if unknown.
      artifacts: the pipeline's, with pushes. Those that garbage collection has marked
        count: their served versions still exist.
    """
    artifact = f"artifact {model.model.id} of run {run_id or 'unknown'}"
    versions = {
        item.id: item.properties.get("pushed_version")
        for item in artifacts
        if item.type == "PushedModel"
        and item.properties.get("model_uri") == model.model.uri
    }
    return f"version {versions[max(versions)]} ({artifact})" if versions else artifact


def pin_baseline(serving_dir: str) -> str:
    """Returns the parameter ``baseline`` of a run that is submitted now.

    Raises:
      ServingError: the model store cannot be read.
    """
    newest = store_at(serving_dir).newest()
    return NO_BASELINE if newest is None else str(newest.version)


def find_baseline(
    serving_dir: str, pinned: str, count: int = 1
) -> tuple[list[str], list[tuple[str, str]]]:
    """Finds the newest versions whose trained models still exist.

    Args:
      serving_dir: of the model store.
      pinned: the parameter ``baseline``.
      count: how many at most.

    Returns:
      The URIs of the trained models, the newest first; and the names of versions newer
      than all of them, each with the reason why it was skipped.

    Raises:
      ServingError: the model store cannot be read.
    """
    skipped: list[tuple[str, str]] = []
    found: list[str] = []
    if pinned == NO_BASELINE:
        return found, skipped
    for version in reversed(store_at(serving_dir).versions()):
        uri = version.facts.get("model_uri")
        if not uri or (pinned != LOOK_UP and version.version > int(pinned)):
            continue
        why = None if storage_for(uri).exists(uri) else f"missing: nothing is at {uri}"
        if version.retired is not None:
            why = f"retired: {version.retired}"
        if why is None and uri not in found:
            found.append(uri)
            if len(found) == count:
                break
        elif why is not None and not found:
            skipped.append((f"version {version.version}", why))
    return found, skipped
