"""A training that is stopped and killed again and again ends as if it had not been."""

from __future__ import annotations

import json
import signal
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.fault]

DONE, STOPPED, KILLED = 0, 42, -signal.SIGKILL
KILL = {"signal": int(signal.SIGKILL)}
STEPS_PER_EPOCH, EVAL_STEPS = 10, 3


@pytest.fixture(scope="module")
def interrupted(trainings: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Exit codes of a training that is resumed until it is done, and its folder."""
    work = tmp_path_factory.mktemp("interrupted")
    codes = [
        # In a long epoch, of which each step is saved.
        trainings.run(work, **KILL, at_step=8, long_epoch_s=0.0),
        # In the validation of the second epoch; the process has seen that of the first.
        trainings.run(work, at_eval_step=EVAL_STEPS + 2),
        # Within the third epoch; the last batch of the second is repeated before.
        trainings.run(work, at_step=5),
        # In the fourth epoch, after the last checkpoint.
        trainings.run(work, **KILL, at_step=STEPS_PER_EPOCH + 2),
        trainings.run(work, **KILL, export="killed"),
        trainings.run(work),
    ]
    return codes, trainings.folder(work)


def test_each_interruption_has_its_exit_code(interrupted):
    codes, work = interrupted
    assert codes == [KILLED, STOPPED, STOPPED, KILLED, KILLED, DONE], work.log


def test_training_resumes_where_it_was_stopped_or_saved_last(interrupted):
    _, work = interrupted
    resumed = [
        "training resumes with epoch 1 of 5, after batch 7",
        "training resumes with epoch 2 of 5, after batch 10",
        "training resumes with epoch 3 of 5, after batch 4",
        "training resumes with epoch 4 of 5",
        "no epoch is left, only the export",
    ]
    assert work.lines("restored") == [f"restored: {line}" for line in resumed]
    assert work.lines("stopped") == [f"stopped: {line}" for line in resumed[1:3]]
    assert [line["epoch"] for line in work.events("restored")] == [0, 1, 2, 3, 5]
    assert all(line in work.log for line in work.lines("restored"))
    assert work.epochs == [1, 2, 3, 4, 5]


def test_the_last_two_checkpoints_are_kept(interrupted):
    _, work = interrupted
    names = sorted(path.name for path in work.checkpoints.glob("*.index"))
    assert len(names) == 2


def test_history_and_weights_equal_those_of_an_uninterrupted_training(
    interrupted, whole
):
    """Dropout included, and the metrics of the interrupted epochs."""
    _, work = interrupted
    assert work.history == whole.history
    assert work.weights == whole.weights


def test_the_facts_of_all_epochs_are_kept(interrupted):
    """Though the last process had no step left to do."""
    _, work = interrupted
    facts = json.loads((work.path / "out/model_run/training.json").read_text())
    assert [item["epoch"] for item in facts["epochs"]] == [1, 2, 3, 4, 5]
    assert all(item["examples_per_second"] > 0 for item in facts["epochs"])
    assert facts["time_to_first_step_s"] > 0


def test_replicas_resume_together(trainings, tmp_path):
    train = {"replicas": 2, "epochs": 2}
    whole, cut = (trainings.folder(tmp_path / name) for name in ("whole", "cut"))
    assert trainings.run(whole.path, train) == DONE
    at_step = 2 * (STEPS_PER_EPOCH + 4)  # each replica counts
    assert trainings.run(cut.path, train, at_step=at_step) == STOPPED
    assert trainings.run(cut.path, train) == DONE
    (line,) = cut.lines("restored")
    assert line == "restored: training resumes with epoch 2 of 2, after batch 4"
    assert cut.epochs == [1, 2]
    for name, values in whole.weights.items():
        # Replicas have moving averages of their own, of which the mean is saved.
        assert np.array(cut.weights[name]) == pytest.approx(np.array(values)), name
    for name in ("loss", "binary_accuracy", "auc"):
        assert cut.history[name] == pytest.approx(whole.history[name]), name
    # Each replica validates with its own moving averages.
    assert cut.history["val_loss"] == pytest.approx(whole.history["val_loss"], rel=1e-3)


def test_early_stopping_is_restored(trainings, tmp_path):
    train = {"learning_rate": 0.3, "epochs": 40, "early_stopping": {"patience": 3}}
    whole, cut = (trainings.folder(tmp_path / name) for name in ("whole", "cut"))
    assert trainings.run(whole.path, train) == DONE
    losses = whole.history["val_loss"]
    best = losses.index(min(losses))
    assert len(losses) == best + 1 + 3, "stops 3 epochs after the best"
    # In the second epoch after the best one: what was best lies before the stop.
    at_step = (best + 2) * STEPS_PER_EPOCH + 5
    assert trainings.run(cut.path, train, at_step=at_step) == STOPPED
    # Killed after training, which is then not done again.
    assert trainings.run(cut.path, train, export="killed") == KILLED
    assert trainings.run(cut.path, train) == DONE
    assert cut.lines("restored")[1] == "restored: no epoch is left, only the export"
    assert len(cut.epochs) == len(losses)
    assert cut.history == whole.history
    assert cut.weights == whole.weights
