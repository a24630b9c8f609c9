"""Recorded contents of an artifact, and their damage."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.storage import digest
from sluice.storage.contents import PROPERTY, Contents

pytestmark = pytest.mark.unit

INDEX = "Format-Serving/variables/variables.index"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A Model artifact with a file beside its SavedModel."""
    (tmp_path / INDEX).parent.mkdir(parents=True)
    (tmp_path / INDEX).write_text("index")
    (tmp_path / "Format-Serving" / "saved_model.pb").write_text("graph")
    (tmp_path / "notes.txt").write_text("a")
    return tmp_path


def _recorded(uri: Path, model_dir: str | None = "Format-Serving") -> Contents:
    found = Contents.read(str(uri), model_dir)
    assert found is not None
    recorded = Contents.recorded({PROPERTY: found.to_json()})
    assert recorded == found
    return recorded


def _remove(root: Path) -> None:
    shutil.rmtree(root)


@pytest.mark.parametrize(
    ("change", "actual"),
    [
        (lambda root: (root / INDEX).write_text("in"), "3 files (8 bytes)"),
        (lambda root: (root / INDEX).unlink(), "2 files (6 bytes)"),
        (lambda root: (root / "more").write_text(""), "4 files (11 bytes)"),
        (lambda root: (root / INDEX).rename(root / "x"), "of other names or sizes"),
        (lambda root: (root / INDEX).write_text("INDEX"), "SHA-256"),
        (lambda root: (root / "Format-Serving/.x").write_text(""), "SHA-256"),
        (_remove, "nothing is there"),
    ],
)
def test_a_change_is_detected(
    model: Path, change: Callable[[Path], object], actual: str
) -> None:
    recorded = _recorded(model)
    assert recorded.damage(str(model)) is None
    change(model)
    damage = recorded.damage(str(model))
    assert damage is not None
    assert actual in str(damage)


def test_only_a_models_content_counts(model: Path) -> None:
    recorded = _recorded(model)
    assert recorded.model_digest == digest.of_tree(model / "Format-Serving")
    (model / "notes.txt").write_text("b")
    assert recorded.damage(str(model)) is None
    data = _recorded(model, None)
    (model / INDEX).write_text("INDEX")
    assert data.damage(str(model)) is None


def test_hidden_files_and_times_do_not_count(model: Path) -> None:
    recorded = _recorded(model)
    (model / ".nfs0001").write_text("hidden")
    os.utime(model / INDEX, (0, 0))
    assert recorded.damage(str(model)) is None


def test_a_model_artifact_without_a_saved_model_is_files(model: Path) -> None:
    shutil.rmtree(model / "Format-Serving")
    assert _recorded(model).model_digest is None


def test_a_missing_artifact_is_not_recorded(model: Path) -> None:
    assert Contents.read(str(model / "nowhere")) is None
    assert Contents.recorded({}) is None
    assert _recorded(model / "notes.txt").files == 1


def test_a_record_without_a_model_digest_is_read(model: Path) -> None:
    before = {PROPERTY: '{"files": 3, "bytes": 11, "digest": "0"}'}
    recorded = Contents.recorded(before)
    assert recorded is not None
    assert "of other names or sizes" in str(recorded.damage(str(model)))
