"""Losses of an epoch where batches are padded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.config.train import Train
from tests.pipeline.training.callbacks.trainings import FEATURES, Output

pytestmark = pytest.mark.tf


def test_the_loss_of_a_validation_is_divided_by_its_examples(examples):
    import tensorflow as tf

    from pipeline.training.callbacks.metrics import LossPerExample
    from pipeline.training.input.training_input import InputSettings, make_input
    from pipeline.training.strategy.distribution import (
        choose_distribution,
    )

    settings = InputSettings([f"{examples}/train*"], [f"{examples}/eval*"], seed=1)
    plain = choose_distribution(Train(batch_size=12))
    padded = replace(plain, kind="tpu")
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
