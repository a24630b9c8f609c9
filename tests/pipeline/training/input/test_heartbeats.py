"""Heartbeats of a training before its first step, while it reads for long."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tf


class Pulse:
    """Counts heartbeats, in place of the memory shared with the supervisor."""

    def __init__(self) -> None:
        self.beats = 0

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__("beats", self.beats + 1 if name == "at" else value)

    def take(self) -> int:
        """Returns the number of heartbeats since the last call."""
        beats, self.beats = self.beats, 0
        return beats


@pytest.fixture
def pulse(monkeypatch: pytest.MonkeyPatch) -> Pulse:
    pulse = Pulse()
    monkeypatch.setattr("pipeline.training.strategy.task_process._pulse", pulse)
    return pulse


def test_counting_and_decoding_beat_for_each_chunk(input_of, pulse, monkeypatch):
    monkeypatch.setattr("pipeline.training.input.examples._MAX_CHUNK_SIZE", 4)
    training_input = input_of(cache="memory")
    chunks = {"train": 1 + 1 + 3 + 2 + 1 + 2 + 1 + 3 + 2, "eval": 4 + 2}
    assert pulse.take() >= sum(chunks.values())
    training_input.train()
    assert pulse.take() >= chunks["train"]


def test_checking_a_checkpoint_beats_for_each_of_its_variables(tmp_path, pulse):
    import tensorflow as tf

    from pipeline.training.checkpoint import Checkpoint, CheckpointSettings
    from pipeline.training.training_state import TrainingState

    model = tf.keras.Sequential([tf.keras.layers.Dense(1) for _ in range(5)])
    model.build((None, 1))
    saved = tf.train.Checkpoint(model=model, state=TrainingState())
    saved.save(f"{tmp_path}/ckpt")
    checkpoint = Checkpoint(CheckpointSettings(str(tmp_path), 1, 1), model, [])
    assert checkpoint.find()
    assert pulse.take() >= 10
