"""Restoring a damaged baseline model from a served copy."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from components.baseline_model.blessed_models import (
    BlessedModel,
    restore,
    served_copy,
)
from sluice.mlmd_items import Artifact
from sluice.storage.contents import PROPERTY, Contents

pytestmark = pytest.mark.unit


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A served version, which everybody may read."""
    version = tmp_path / "serving" / "1"
    (version / "variables").mkdir(parents=True)
    for name in ("saved_model.pb", "variables/variables.index"):
        (version / name).write_text("bytes")
        (version / name).chmod(0o644)
    return version


@pytest.fixture
def model(tmp_path: Path, served: Path) -> BlessedModel:
    """The model that was served, now truncated."""
    root = tmp_path / "model"
    shutil.copytree(served, root / "Format-Serving")
    contents = Contents.read(str(root), "Format-Serving")
    assert contents is not None
    (root / "Format-Serving" / "saved_model.pb").write_text("")
    return BlessedModel(
        Artifact(1, "Model", str(root), properties={PROPERTY: contents.to_json()}),
        blessing_id=2,
    )


def _names(model: BlessedModel) -> list[str]:
    return sorted(os.listdir(model.model.uri))


@pytest.mark.parametrize("is_gone", [False, True])
def test_restored_files_have_the_mode_of_the_workspace(
    model: BlessedModel, served: Path, is_gone: bool
) -> None:
    """A private workspace has a umask of its own; what is served all may read."""
    if is_gone:
        shutil.rmtree(model.model.uri)
    before = os.umask(0o077)
    try:
        assert restore(model, served)
    finally:
        os.umask(before)
    assert model.damage() is None
    assert _names(model) == ["Format-Serving"]
    restored = Path(model.model.uri, "Format-Serving", "saved_model.pb")
    assert restored.stat().st_mode & 0o777 == 0o600


def test_leftovers_of_a_killed_restoration_are_removed(
    model: BlessedModel, served: Path
) -> None:
    for name in (".restored", ".damaged"):
        (Path(model.model.uri) / name / "variables").mkdir(parents=True)
    assert restore(model, served)
    assert _names(model) == ["Format-Serving"]


def test_a_failed_copy_leaves_the_model_unchanged(
    model: BlessedModel, tmp_path: Path
) -> None:
    assert not restore(model, tmp_path / "nowhere")
    assert _names(model) == ["Format-Serving"]
    assert model.damage() is not None


def test_a_file_beside_the_model_is_not_restored(
    model: BlessedModel, served: Path
) -> None:
    (Path(model.model.uri) / "notes.txt").write_text("not there when it was made")
    assert not restore(model, served)


def test_a_model_in_a_bucket_is_not_restored_into_a_local_folder(
    model: BlessedModel, served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir())
    remote = replace(model, model=replace(model.model, uri="gs://bucket/model"))
    assert not restore(remote, served)
    assert sorted(os.listdir()) == before


def _push(model: BlessedModel, version: Path, artifact_id: int) -> Artifact:
    assert model.contents is not None
    properties = {
        "pushed_destination": str(version),
        "digest": model.contents.model_digest,
    }
    return Artifact(artifact_id, "PushedModel", "/pushed", properties=properties)


def test_an_unreadable_version_is_not_used(
    model: BlessedModel, served: Path, tmp_path: Path
) -> None:
    newer = tmp_path / "serving" / "2"
    shutil.copytree(served, newer)
    pushes = [_push(model, served, 3), _push(model, newer, 4)]
    assert served_copy(model, pushes) == newer
    # Reading at the start of a process's memory is an I/O error, for root too.
    (newer / "variables" / "unreadable").symlink_to("/proc/self/mem")
    assert served_copy(model, pushes) == served
