"""A fine-tuning of two phases, and its resumption in each of them."""

from __future__ import annotations

import signal
from typing import Any

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.fault]

DONE, STOPPED, KILLED = 0, 42, -signal.SIGKILL
STEPS_PER_EPOCH = 10
TRAIN = {
    "fine_tune": {"freeze": ["dense", "batch_*"], "unfreeze_after": 2},
    # In the first phase nothing gets better by so much, and training goes on.
    "early_stopping": {"patience": 1, "min_delta": 100.0},
}


@pytest.fixture(scope="module")
def tuned(trainings: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A fine-tuning that nothing happened to."""
    work = trainings.folder(tmp_path_factory.mktemp("tuned"))
    assert trainings.run(work.path, TRAIN, export="real") == DONE, work.log
    return work


def test_both_phases_are_one_history(tuned):
    history = tuned.history
    assert history["learning_rate"] == pytest.approx([0.01, 0.01, 0.001, 0.001])
    assert tuned.epochs == [1, 2, 3, 4], "it stops early in the second phase only"
    assert {len(values) for values in history.values()} == {4}
    # 4 inputs, 8 units, 1 output; of the normalization 8 means and 8 variances.
    assert tuned.lines("fine_tune") == [
        "fine-tuning: from epoch 1, 9 parameters are trained, 72 are frozen",
        "fine-tuning: from epoch 3, 49 parameters are trained, 32 are frozen",
    ]


def test_a_resumed_fine_tuning_equals_an_uninterrupted_one(
    trainings, tuned, tmp_path_factory
):
    work = trainings.folder(tmp_path_factory.mktemp("cut"))
    kill = {"signal": int(signal.SIGKILL)}
    codes = [
        trainings.run(work.path, TRAIN, at_step=4),
        # Within the second phase, from the checkpoint of its first epoch.
        trainings.run(work.path, TRAIN, **kill, at_step=3 * STEPS_PER_EPOCH),
        trainings.run(work.path, TRAIN, at_step=5),
        trainings.run(work.path, TRAIN),
    ]
    assert codes == [STOPPED, KILLED, STOPPED, DONE], work.log
    assert work.lines("restored") == [
        "restored: training resumes with epoch 1 of 5, after batch 4",
        "restored: training resumes with epoch 4 of 5",
        "restored: training resumes with epoch 4 of 5, after batch 5",
    ]
    assert work.history == tuned.history
    assert work.weights == tuned.weights


def test_a_wrong_layer_is_named(trainings, tmp_path):
    work = trainings.folder(tmp_path / "wrong")
    assert trainings.run(work.path, {"fine_tune": {"freeze": ["dens"]}}) == 1
    assert "no layer is named 'dens'" in work.log
    assert "did you mean 'dense'?" in work.log
