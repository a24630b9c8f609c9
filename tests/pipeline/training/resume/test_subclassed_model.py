"""A model that Keras builds with its first batch: trained, resumed and exported."""

from __future__ import annotations

import signal

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.fault]

DONE, STOPPED, KILLED = 0, 42, -signal.SIGKILL
STEPS_PER_EPOCH = 10


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_resumed_training_equals_an_uninterrupted_one(trainings, tmp_path, replicas):
    train = {"replicas": replicas} if replicas > 1 else {}
    facts = {"model": "build_subclassed", "export": "real"}
    whole, cut = (trainings.folder(tmp_path / name) for name in ("whole", "cut"))
    assert trainings.run(whole.path, train, **facts) == DONE, whole.log
    kill = {"signal": int(signal.SIGKILL)}
    codes = [
        # Each replica counts the batches that it sees.
        trainings.run(cut.path, train, **facts, at_step=4 * replicas),
        trainings.run(
            cut.path, train, **facts, **kill, at_step=replicas * (STEPS_PER_EPOCH + 2)
        ),
        trainings.run(cut.path, train, **facts),
    ]
    assert codes == [STOPPED, KILLED, DONE], cut.log
    assert cut.lines("restored") == [
        "restored: training resumes with epoch 1 of 5, after batch 4",
        "restored: training resumes with epoch 2 of 5",
    ]
    assert set(cut.history) == set(whole.history)
    for name, values in whole.history.items():
        assert cut.history[name] == pytest.approx(values, rel=1e-5)
    assert whole.history["loss"][-1] < whole.history["loss"][0]
    assert (cut.path / "out/serving/saved_model.pb").is_file()
