"""Lists blessed models and selects the baseline among them.

TFX takes the latest blessed model, whatever has become of its files since. Here a
model that has been retired or damaged is passed over, and the next older one stands in.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice.mlmd_items import Artifact
from sluice.storage import digest
from sluice.storage.contents import Contents, Damage
from sluice.storage.storage import is_remote, storage_for

# Custom properties of a Model artifact: why a person has retired it, and from which
# version its damaged files were restored.
RETIRED = "sluice_retired"
RESTORED = "sluice_restored"


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
        """Why a person has retired it, None if nobody has."""
        return self.model.properties.get(RETIRED)

    @property
    def contents(self) -> Contents | None:
        """What it held when it was made, None where that was not recorded."""
        return Contents.recorded(self.model.properties)

    def damage(self) -> Damage | None:
        """Returns how its files differ from what they were, None if they do not."""
        if self.contents is not None:
            return self.contents.damage(self.model.uri)
        if storage_for(self.model.uri).exists(self.model.uri):
            return None
        return Damage("a model", "nothing is there")

    def rejection_reason(self) -> str | None:
        """Returns why it cannot be the baseline, None if it can."""
        if self.retired is not None:
            return f"retired: {self.retired}"
        damage = self.damage()
        return None if damage is None else f"damaged: {damage}"


def blessed_models(artifacts: Iterable[Artifact]) -> list[BlessedModel]:
    """Returns the blessed models among the artifacts of a pipeline, newest first."""
    newest_first = sorted(artifacts, key=lambda item: item.id, reverse=True)
    live = [item for item in newest_first if item.state == "live"]
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
    blessed: Iterable[BlessedModel],
) -> Iterator[tuple[BlessedModel, str | None]]:
    """Yields each model and why it cannot be the baseline, up to the first that can."""
    for model in blessed:
        reason = model.rejection_reason()
        yield model, reason
        if reason is None:
            return


def served_copy(model: BlessedModel, artifacts: Iterable[Artifact]) -> Path | None:
    """Returns an undamaged served version with the bytes of a model, if there is one.

    Args:
      model: whose bytes are looked for.
      artifacts: the pipeline's, its pushes among them.
    """
    for item in _pushes_of(model, artifacts):
        path = Path(str(item.properties.get("pushed_destination", "")))
        try:
            if path.is_dir() and digest.of_tree(path) == item.properties["digest"]:
                return path
        except OSError:
            continue  # What cannot be read restores nothing.
    return None


def name_of(
    model: BlessedModel, run_id: str | None, artifacts: Iterable[Artifact]
) -> str:
    """Returns a model as people know it: by its latest version, artifact and run.

    Args:
      model: the model.
      run_id: that trained it; None or empty if it is not known.
      artifacts: the pipeline's, its pushes among them.
    """
    artifact = f"artifact {model.model.id} of run {run_id or 'unknown'}"
    versions = [
        item.properties.get("pushed_version") for item in _pushes_of(model, artifacts)
    ]
    return f"version {versions[0]} ({artifact})" if versions else artifact


def _pushes_of(model: BlessedModel, artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Returns the pushes of a model's bytes, newest first.

    Also those that a collection of garbage has marked: what they served is there.
    """
    contents = model.contents
    if contents is None or contents.model_digest is None:
        return []
    pushes = [
        item
        for item in artifacts
        if item.type == "PushedModel"
        and item.properties.get("digest") == contents.model_digest
    ]
    return sorted(pushes, key=lambda item: item.id, reverse=True)


def restore(model: BlessedModel, source: Path) -> bool:
    """Replaces a model's SavedModel by an undamaged copy of it.

    Killed in between, it leaves a model that is still damaged, and hidden folders
    beside it which the next restoration removes.

    Args:
      model: whose ``contents`` say where the SavedModel belongs.
      source: a directory with the same bytes; see ``served_copy``.

    Returns:
      Whether the model is undamaged now; not so on a full disk, in remote storage, or
      where files of the artifact beside the SavedModel are damaged too.
    """
    contents = model.contents
    if contents is None or contents.model_dir is None or is_remote(model.model.uri):
        return False
    root = Path(model.model.uri)
    target = root / contents.model_dir
    incoming, outgoing = root / ".restored", root / ".damaged"
    try:
        for path in (incoming, outgoing):
            shutil.rmtree(path, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Who may read it follows from the workspace, not from what is served.
        shutil.copytree(source, incoming, copy_function=shutil.copyfile)
        if os.path.lexists(target):
            os.rename(target, outgoing)
        os.rename(incoming, target)
    except OSError:
        return False
    finally:
        for path in (incoming, outgoing):
            shutil.rmtree(path, ignore_errors=True)
    return model.damage() is None
