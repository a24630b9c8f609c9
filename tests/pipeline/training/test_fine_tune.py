"""Freezing and unfreezing layers, in flat, nested and subclassed models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice.errors import NodeError

pytestmark = pytest.mark.tf


def _nested() -> Any:
    """Returns a model of a model, each with batch normalization."""
    import tensorflow as tf

    layers = tf.keras.layers
    inner = tf.keras.Sequential(
        [
            layers.Dense(3, name="block1_dense", input_shape=(2,)),
            layers.BatchNormalization(name="block1_norm"),
            layers.Dense(3, name="block2_dense"),
        ],
        name="pretrained",
    )
    inputs = tf.keras.Input((2,))
    x = layers.BatchNormalization(name="own_norm")(inner(inputs))
    return tf.keras.Model(inputs, layers.Dense(1, name="head")(x))


def _trained(model: Any) -> set[str]:
    """Fits a step, and returns the layers with a changed weight or statistic."""
    import tensorflow as tf

    before = {weight.name: weight.numpy() for weight in model.weights}
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    random = np.random.default_rng(1)
    model.fit(random.normal(5, 2, (8, 2)), random.normal(size=(8, 1)), verbose=0)
    return {
        weight.name.split("/")[-2]
        for weight in model.weights
        if not np.array_equal(weight.numpy(), before[weight.name])
    }


ALL = {"block1_dense", "block1_norm", "block2_dense", "own_norm", "head"}


@pytest.mark.parametrize(
    ("patterns", "frozen", "frozen_for_ever"),
    [
        (["backbone"], {"block1_dense", "block1_norm", "block2_dense"}, "block1_norm"),
        (
            ["block?_dense", "own_norm"],
            {"block1_dense", "block2_dense", "own_norm"},
            "own_norm",
        ),
        (["head"], {"head"}, None),
    ],
)
def test_frozen_layers_do_not_change(patterns, frozen, frozen_for_ever):
    from pipeline.training.fine_tune import freeze, unfreeze

    model = _nested()
    freeze(model, patterns)
    assert _trained(model) == ALL - frozen
    unfreeze(model, patterns)
    assert _trained(model) == ALL - {frozen_for_ever}


def test_a_pattern_without_a_layer_names_the_nearest():
    import tensorflow as tf

    from pipeline.training.fine_tune import freeze

    with pytest.raises(NodeError, match="no layer is named 'blok1_dense'") as caught:
        freeze(_nested(), ["blok1_dense"])
    assert caught.value.hint == "did you mean 'block1_dense'?"
    assert "own_norm" in str(caught.value)
    flat = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    with pytest.raises(NodeError, match="no layer is named 'backbone'"):
        freeze(flat, ["backbone"])
    with pytest.raises(NodeError, match="nothing to train"):
        freeze(flat, ["*"])


def test_layers_of_a_subclassed_model_and_those_its_author_froze():
    import tensorflow as tf

    from pipeline.training.fine_tune import freeze, unfreeze

    class Own(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [_nested(), tf.keras.layers.Dense(1, name="last")]

        def call(self, inputs: Any) -> Any:
            for part in self.parts:
                inputs = part(inputs)
            return inputs

    model = Own()
    model.parts[0].get_layer("head").trainable = False
    model(np.zeros((1, 2)))
    freeze(model, ["block1_*"])
    assert _trained(model) == {"block2_dense", "own_norm", "last"}
    unfreeze(model, ["block1_*"])
    assert _trained(model) == {"block1_dense", "block2_dense", "own_norm", "last"}
