"""Batches as a process reads them, and losses where batches are padded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pipeline.training.callbacks.trainings import FEATURES, Output

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("form", ["plain", "distributed", "creator"])
def test_batches_in_what_fit_takes(form: str) -> None:
    import tensorflow as tf

    from pipeline.training.callbacks.local_batches import local_batches

    def make(context: Any = None) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices({"a": [1, 2, 3]}).batch(2)

    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    given: dict[str, Any] = {
        "plain": make,
        "distributed": lambda: strategy.distribute_datasets_from_function(make),
        "creator": lambda: tf.keras.utils.experimental.DatasetCreator(make),
    }
    first, second = local_batches(given[form](), strategy)
    np.testing.assert_array_equal(first["a"], [1, 2])
    np.testing.assert_array_equal(second["a"], [3])


def test_the_loss_of_a_validation_is_divided_by_its_examples(examples: Path) -> None:
    import tensorflow as tf

    from pipeline.training.callbacks.metrics import LossPerExample
    from pipeline.training.input.training_input import InputSettings, make_input
    from pipeline.training.strategy.distribution import (
        StrategySettings,
        choose_distribution,
    )

    settings = InputSettings([f"{examples}/train*"], [f"{examples}/eval*"], seed=1)
    plain = choose_distribution(StrategySettings(batch_size=12))
    padded = replace(plain, static_shapes=True)
    names = [feature.key for feature in FEATURES.features]
    inputs = {name: tf.keras.Input((1,), name=name) for name in names}
    joined = tf.keras.layers.Concatenate()(list(inputs.values()))
    output = tf.keras.layers.Dense(1, activation="sigmoid")(joined)
    model = tf.keras.Model(inputs, output)
    model.compile("sgd", "binary_crossentropy", weighted_metrics=["accuracy"])
    losses = []
    for distribution in (plain, padded):
        given = make_input(settings, FEATURES, Output(), distribution)
        history = model.fit(
            given.train(),
            steps_per_epoch=given.steps_per_epoch,
            validation_data=given.eval(),
            validation_steps=given.eval_steps,
            callbacks=[LossPerExample(given, distribution)],
            verbose=0,
        ).history
        loss, accuracy = model.evaluate(
            make_input(settings, FEATURES, Output(), plain).eval(), verbose=0
        )
        assert history["val_loss"] == pytest.approx([loss])
        assert history["val_accuracy"] == pytest.approx([accuracy])
        losses.append(loss)
    # 16 examples in two batches of 12: Keras alone would give two thirds of it.
    assert losses[1] > 0.1


def test_several_workers_name_no_examples() -> None:
    """Each reads its share; to read it again it would need all others."""
    import tensorflow as tf

    from pipeline.training.callbacks.non_finite_loss import StopOnNonFiniteLoss
    from sluice.errors import NodeError

    class Input:
        """The part of TrainingInput that is used; reading fails."""

        steps_per_epoch, eval_steps = 5, 2

    given: Any = Input()
    callback = StopOnNonFiniteLoss(given, FEATURES, workers=2)
    model = tf.keras.Sequential()
    model.compile(tf.keras.optimizers.SGD(0.5))
    callback.set_model(model)
    callback.on_epoch_begin(0)
    callback.on_train_batch_begin(3)
    with pytest.raises(NodeError, match="so training has stopped") as caught:
        callback.on_train_batch_end(3, {"loss": float("nan")})
    assert caught.value.where == "epoch 1, batch 4 of 5, learning rate 0.5"
    assert "train on one worker" in str(caught.value.hint)
