"""Lists blessed models and selects the baseline among them.

TFX selects the latest blessed model, even if its files are damaged or missing. Here a
retired or damaged model is skipped, and the next older one is selected.
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

# Custom properties of a Model artifact: a person's reason to retire it, and the version
# that its damaged files were restored from.
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
        """A person's reason to retire it; None if it is not retired."""
        return self.model.properties.get(RETIRED)

    @property
    def contents(self) -> Contents | None:
        """The recorded contents of its files; None if they were not recorded."""
        return Contents.recorded(self.model.properties)

    def damage(self) -> Damage | None:
        """Returns how its files differ from the recorded ones; None if they do not."""
        return damage_of(self.model)

    def rejection_reason(self) -> str | None:
        """Returns why it cannot be the baseline; None if it can."""
        if self.retired is not None:
            return f"retired: {self.retired}"
        damage = self.damage()
        return None if damage is None else f"damaged: {damage}"


def damage_of(model: Artifact) -> Damage | None:
    """Returns how a model's files differ from the recorded ones; None if not at all."""
    contents = Contents.recorded(model.properties)
    if contents is not None:
        return contents.damage(model.uri)
    if storage_for(model.uri).exists(model.uri):
        return None
    return Damage("a model", "nothing is there")


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
    """Returns a served version with the undamaged bytes of a model, if there is one.

    Args:
      model: to find a copy of.
      artifacts: the pipeline's, pushes included.
    """
    for item in _pushes_of(model, artifacts):
        destination = str(item.properties.get("pushed_destination", ""))
        if is_remote(destination):
            continue  # ``restore`` copies from this machine only.
        path = Path(destination)
        try:
            if path.is_dir() and digest.of_tree(path) == item.properties["digest"]:
                return path
        except OSError:
            continue  # An unreadable version is not a copy.
    return None


def name_of(
    model: BlessedModel, run_id: str | None, artifacts: Iterable[Artifact]
) -> str:
    """Returns the display name of a model: its latest version, artifact and run.

    Args:
      model: to name.
      run_id: of the run that trained it; None or empty if unknown.
      artifacts: the pipeline's, pushes included.
    """
    artifact = f"artifact {model.model.id} of run {run_id or 'unknown'}"
    versions = [
        item.properties.get("pushed_version") for item in _pushes_of(model, artifacts)
    ]
    return f"version {versions[0]} ({artifact})" if versions else artifact


def _pushes_of(model: BlessedModel, artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Returns the pushes of a model's bytes, newest first.

    Pushes marked by garbage collection count: their served versions still exist.
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
    """Replaces a model's SavedModel by an undamaged copy.

    If it is killed, the model is still damaged, and hidden folders are left beside it
    that the next restoration removes.

    Args:
      model: to restore; ``contents`` has the place of the SavedModel.
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
        # copyfile: file modes follow the workspace's umask, not the served files.
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
