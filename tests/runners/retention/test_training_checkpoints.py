"""Which checkpoint folders of unfinished trainings are kept."""

from __future__ import annotations

import os
import time

import pytest

from runners.retention.training_checkpoints import (
    MAX_UNFINISHED,
    begin_training,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def trainer(tmp_path):
    return tmp_path / "checkpoints" / "Trainer"


def _save(node_dir, key, *, age_s):
    """Saves a checkpoint; the folder is ``age_s`` old."""
    folder = node_dir / key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ckpt-1.index").write_text("index")
    then = time.time() - age_s
    os.utime(folder, (then, then))
    return folder


def _keys(node_dir):
    return {path.name for path in node_dir.iterdir()}


def test_a_training_finds_its_checkpoints_after_others(trainer):
    folder = _save(trainer, "first", age_s=100)
    _save(trainer, "second", age_s=50)
    assert begin_training(trainer, "first") == folder
    assert [path.name for path in folder.iterdir()] == ["ckpt-1.index"]
    assert _keys(trainer) == {"first", "second"}


def test_the_newest_few_trainings_are_kept(trainer):
    # One more than are kept; "0" is the oldest.
    keys = [str(number) for number in range(MAX_UNFINISHED + 1)]
    for key in keys:
        _save(trainer, key, age_s=100 - int(key))
    begin_training(trainer, "new")
    assert _keys(trainer) == set(keys[2:]), "the new one needs room too"
    _save(trainer, keys[0], age_s=1000)
    begin_training(trainer, keys[0])
    assert _keys(trainer) == {keys[0], *keys[2:]}, "the oldest goes on"


def test_from_scratch_deletes_only_its_own(trainer):
    _save(trainer, "first", age_s=10)
    _save(trainer, "second", age_s=10)
    assert not begin_training(trainer, "first", from_scratch=True).exists()
    assert _keys(trainer) == {"second"}
