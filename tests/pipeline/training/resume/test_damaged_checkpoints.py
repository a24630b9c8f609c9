"""Checkpoints that are damaged, or cannot be written."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.fault]

DONE, STOPPED = 0, 42


@pytest.fixture(scope="module")
def stopped(trainings: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A training that was stopped in its fourth epoch. Tests take a copy."""
    work = trainings.folder(tmp_path_factory.mktemp("stopped"))
    assert trainings.run(work.path, at_step=34) == STOPPED
    assert work.newest_checkpoint.name == "ckpt-4"
    return work


def test_a_truncated_checkpoint_falls_back_to_the_one_before(
    trainings, whole, stopped, tmp_path
):
    shutil.copytree(stopped.path, tmp_path, dirs_exist_ok=True)
    work = trainings.folder(tmp_path)
    newest = work.newest_checkpoint
    path = newest.with_name(f"{newest.name}.data-00000-of-00001")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert trainings.run(tmp_path) == DONE
    (damaged,) = work.lines("checkpoint_damaged")
    assert damaged.startswith("checkpoint ckpt-4 is damaged and not used: ")
    assert work.lines("restored") == ["restored: training resumes with epoch 4 of 5"]
    assert work.weights == whole.weights
    assert work.history == whole.history


def test_without_an_intact_checkpoint_training_starts_again(
    trainings, whole, stopped, tmp_path
):
    shutil.copytree(stopped.path, tmp_path, dirs_exist_ok=True)
    work = trainings.folder(tmp_path)
    for path in work.checkpoints.iterdir():
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert trainings.run(tmp_path) == DONE
    assert len(work.lines("checkpoint_damaged")) == 2
    assert work.lines("restored") == []
    assert work.epochs == [1, 2, 3, 1, 2, 3, 4, 5]
    assert work.weights == whole.weights


def test_training_continues_without_a_writable_checkpoint(trainings, whole, tmp_path):
    work = trainings.folder(tmp_path)
    work.checkpoints.write_text("a file where the directory should be")
    assert trainings.run(tmp_path) == DONE
    assert work.lines("checkpoint_not_saved")[0].startswith("checkpoint not saved: ")
    assert work.weights == whole.weights


def test_short_epochs_are_not_all_saved(trainings, tmp_path):
    assert trainings.run(tmp_path, share_of_time=1e-9) == DONE
    # The first, whose cost is not known yet, and the last.
    assert trainings.folder(tmp_path).newest_checkpoint.name == "ckpt-2"
