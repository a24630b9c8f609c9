"""Which checkpoint folders of unfinished trainings are kept."""

from __future__ import annotations

import os
import time

import pytest

from runners.retention.training_checkpoints import (
    MAX_AGE_S,
    MAX_UNFINISHED,
    NodeCheckpoints,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def trainer(tmp_path):
    return NodeCheckpoints(tmp_path / "checkpoints" / "Trainer")


def _save(node, key, *, age_s):
    """Saves a checkpoint; the folder is ``age_s`` old."""
    folder = node.directory / key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ckpt-1.index").write_text("index")
    then = time.time() - age_s
    os.utime(folder, (then, then))
    return folder


def _keys(node):
    return {path.name for path in node.directory.iterdir()}


def test_a_training_finds_its_checkpoints_after_others(trainer):
    folder = _save(trainer, "first", age_s=100)
    _save(trainer, "second", age_s=50)
    assert trainer.begin("first") == folder
    assert [path.name for path in folder.iterdir()] == ["ckpt-1.index"]
    assert _keys(trainer) == {"first", "second"}


def test_the_newest_few_trainings_are_kept(trainer):
    # One more than are kept; "0" is the oldest.
    keys = [str(number) for number in range(MAX_UNFINISHED + 1)]
    for key in keys:
        _save(trainer, key, age_s=100 - int(key))
    trainer.begin("new")
    assert _keys(trainer) == set(keys[2:]), "the new one needs room too"
    _save(trainer, keys[0], age_s=1000)
    trainer.begin(keys[0])
    assert _keys(trainer) == {keys[0], *keys[2:]}, "the oldest goes on"


def test_an_old_training_is_deleted_unless_it_goes_on(trainer):
    for key in ("first", "second"):
        _save(trainer, key, age_s=MAX_AGE_S + 60)
    _save(trainer, "third", age_s=MAX_AGE_S - 60)
    assert len(trainer.expired()) == 2
    trainer.begin("first")
    assert _keys(trainer) == {"first", "third"}


def test_from_scratch_deletes_only_its_own(trainer):
    _save(trainer, "first", age_s=10)
    _save(trainer, "second", age_s=10)
    assert not trainer.begin("first", from_scratch=True).exists()
    assert _keys(trainer) == {"second"}
    trainer.delete("second")
    assert not trainer.directory.exists()
    trainer.delete("second")
