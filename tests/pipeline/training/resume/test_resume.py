"""A training that is stopped and killed again and again ends as if it had not been."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.fault, pytest.mark.acceptance]

DONE, STOPPED, KILLED = 0, 42, -signal.SIGKILL
KILL = {"signal": int(signal.SIGKILL)}
STEPS_PER_EPOCH, EVAL_STEPS = 10, 3
PLATEAU = {"patience": 1, "factor": 0.5, "min_delta": 0.5}


@pytest.fixture(scope="module", params=["build_model", "build_keras_3"])
def interrupted(
    request: Any, trainings: Any, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Exit codes of a training that is resumed until it is done, and its folder."""
    work, made = tmp_path_factory.mktemp("interrupted"), {"model": request.param}
    codes = [
        # After the checkpoint of its sixth step.
        trainings.run(work, **made, **KILL, at_step=8, save_every=3),
        # In the validation of the second epoch; the process has seen that of the first.
        trainings.run(work, **made, at_eval_step=EVAL_STEPS + 2),
        trainings.run(work, **made, **KILL, at_step=2 * STEPS_PER_EPOCH + 2),
        trainings.run(work, **made, **KILL, export="killed"),
        trainings.run(work, **made),
    ]
    return codes, trainings.folder(work), request.param


def test_training_resumes_from_its_last_checkpoint(interrupted):
    codes, work, _ = interrupted
    assert codes == [KILLED, STOPPED, KILLED, KILLED, DONE], work.log
    resumed = [
        "training resumes with epoch 1 of 5, after batch 6",
        "training resumes with epoch 2 of 5",
        "training resumes with epoch 4 of 5",
        "no epoch is left, only the export",
    ]
    assert work.lines("restored") == [f"restored: {line}" for line in resumed]
    assert [line["epoch"] for line in work.events("restored")] == [0, 1, 3, 5]
    assert all(line in work.log for line in work.lines("restored"))
    assert work.epochs == [1, 2, 3, 4, 5]


def test_weights_and_history_are_those_of_an_uninterrupted_training(
    interrupted, trainings, tmp_path
):
    _, work, model = interrupted
    whole = trainings.folder(tmp_path)
    assert trainings.run(tmp_path, checkpoints=False, model=model) == DONE, whole.log
    assert not whole.checkpoints.exists()
    assert len(work.weights) == 8, "two dense layers and a batch normalization"
    assert work.weights == whole.weights
    assert work.history.keys() == whole.history.keys()
    for name, values in whole.history.items():
        # The training metrics of the first epoch are of its last four batches.
        first = 0 if name.startswith("val_") or name == "learning_rate" else 1
        assert work.history[name][first:] == values[first:], name


def test_the_facts_of_all_epochs_are_kept(interrupted):
    """Though the last process had no step left to do."""
    _, work, _ = interrupted
    facts = work.facts
    assert [item["epoch"] for item in facts["epochs"]] == [1, 2, 3, 4, 5]
    assert all(item["examples_per_second"] > 0 for item in facts["epochs"])
    assert facts["time_to_first_step_s"] > 0


@pytest.mark.parametrize(
    ("model", "replicas"),
    [("build_model", 2), ("build_subclassed", 1), ("build_keras_3", 1)],
)
def test_a_killed_regression_resumes(trainings, tmp_path, model, replicas):
    """With its scale: the label's deviation is 50, and its mean 1000."""
    train: Any = {"epochs": 3, "learning_rate": 0.03}
    train |= {"replicas": replicas} if replicas > 1 else {}
    facts: Any = {"model": model, "label": "z", "export": "real"}
    whole, cut = (trainings.folder(tmp_path / name) for name in ("whole", "cut"))
    assert trainings.run(whole.path, train, **facts) == DONE, whole.log
    at_step = replicas * (STEPS_PER_EPOCH + 8)
    killed = trainings.run(
        cut.path, train, **facts, **KILL, at_step=at_step, save_every=3
    )
    assert killed == KILLED, cut.log
    assert trainings.run(cut.path, train, **facts) == DONE, cut.log
    (restored,) = cut.lines("restored")
    assert restored == "restored: training resumes with epoch 2 of 3, after batch 6"
    errors = whole.history["val_root_mean_squared_error"]
    assert max(errors) < 100, "the label's unit"
    assert whole.history["loss"][-1] < whole.history["loss"][0]
    assert cut.history["val_root_mean_squared_error"] == pytest.approx(errors, rel=1e-3)
    assert cut.weights.keys() == whole.weights.keys()
    for name, values in whole.weights.items():
        assert np.allclose(cut.weights[name], values, rtol=1e-3, atol=1e-4), name
    assert (cut.path / "out/model/saved_model.pb").is_file()


@pytest.mark.parametrize("model", ["build_model", "build_keras_3"])
def test_early_stopping_and_plateaus_are_restored(trainings, tmp_path, model):
    made = {"model": model}
    train = {
        "learning_rate": 0.3,
        "epochs": 40,
        "early_stopping": {"patience": 3},
        "reduce_on_plateau": PLATEAU,
    }
    whole, cut = (trainings.folder(tmp_path / name) for name in ("whole", "cut"))
    assert trainings.run(whole.path, train, **made) == DONE
    losses, rates = whole.history["val_loss"], whole.history["learning_rate"]
    best = losses.index(min(losses))
    assert len(losses) == best + 1 + 3, "stops 3 epochs after the best"
    assert rates[-1] < 0.1, "the plateaus would be others after a reset"
    # In the second epoch after the best one: what was best lies before the stop.
    at_step = (best + 2) * STEPS_PER_EPOCH + 5
    assert trainings.run(cut.path, train, **made, at_step=at_step) == STOPPED
    # Killed after training, which is then not done again.
    assert trainings.run(cut.path, train, **made, export="killed") == KILLED
    assert trainings.run(cut.path, train, **made) == DONE
    assert cut.lines("restored")[1] == "restored: no epoch is left, only the export"
    assert len(cut.epochs) == len(losses)
    assert cut.history == whole.history
    assert cut.weights == whole.weights


@pytest.mark.parametrize("model", ["build_model", "build_keras_3"])
def test_a_fine_tuning_resumes_in_each_of_its_phases(trainings, tmp_path, model):
    made = {"model": model}
    train = {
        "learning_rate": {"kind": "cosine", "initial": 0.1, "warmup_epochs": 1.0},
        "fine_tune": {"freeze": ["dense", "batch_*"], "unfreeze_after": 2},
        # In the first phase nothing gets better by so much, and training goes on.
        "early_stopping": {"patience": 1, "min_delta": 100.0},
        "steps_per_execution": 4,
    }
    whole, cut = (trainings.folder(tmp_path / name) for name in ("whole", "cut"))
    assert trainings.run(whole.path, train, **made, export="real") == DONE, whole.log
    assert whole.epochs == [1, 2, 3, 4], "it stops early in the second phase only"
    rates = whole.history["learning_rate"]
    assert rates[1] > 0.01 and rates[2:] == pytest.approx([0.01, 0.01])
    # 4 inputs, 8 units, 1 output; of the normalization 8 means and 8 variances.
    counts = (
        whole.facts[f"{kind}_parameters"] for kind in ("trainable", "non_trainable")
    )
    assert tuple(counts) == (49, 32)
    codes = [
        trainings.run(cut.path, train, **made, at_step=STEPS_PER_EPOCH + 4),
        # Within the second phase.
        trainings.run(
            cut.path, train, **made, **KILL, at_step=STEPS_PER_EPOCH + 9, save_every=1
        ),
        trainings.run(cut.path, train, **made, **KILL, at_step=STEPS_PER_EPOCH),
        trainings.run(cut.path, train, **made),
    ]
    assert codes == [STOPPED, KILLED, KILLED, DONE], cut.log
    assert cut.lines("restored") == [
        "restored: training resumes with epoch 2 of 5",
        "restored: training resumes with epoch 3 of 5, after batch 8",
        "restored: training resumes with epoch 4 of 5",
    ]
    assert cut.history["val_loss"] == whole.history["val_loss"]
    assert cut.history["learning_rate"] == pytest.approx(rates)
    assert cut.weights == whole.weights


@pytest.mark.parametrize("model", ["build_model", "build_keras_3"])
def test_a_model_of_mixed_precision_is_exported_in_float32(trainings, tmp_path, model):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    work, train = trainings.folder(tmp_path), {"precision": "mixed_bfloat16"}
    code = trainings.run(tmp_path, {**train, "epochs": 1}, model=model, export="real")
    assert code == DONE, work.log
    assert work.facts["precision"] == "mixed_bfloat16"
    content = (tmp_path / "out/model/saved_model.pb").read_bytes()
    (meta_graph,) = SavedModel.FromString(content).meta_graphs
    assert "DT_FLOAT" in str(meta_graph.graph_def)
    assert "DT_BFLOAT16" not in str(meta_graph.graph_def)


def test_a_checkpoint_that_cannot_be_restored_is_an_error(trainings, tmp_path):
    work = trainings.folder(tmp_path)
    assert trainings.run(tmp_path, at_step=STEPS_PER_EPOCH + 4) == STOPPED
    (path,) = work.checkpoints.rglob("*.data-*")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert trainings.run(tmp_path) == 1
    assert "NodeError: the checkpoint cannot be restored: " in work.log
    assert "--force Trainer trains from scratch" in work.log
