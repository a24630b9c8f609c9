"""Training step 2: a model that Keras may trace."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.patches.tensorflow import exclude_keras_from_autograph
from tests.kit.trainings import settings

pytestmark = pytest.mark.tf


def lazy(inputs: Any, params: dict[str, Any]) -> Any:
    """A model that Keras would build with its first batch."""
    import tensorflow as tf

    class Lazy(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = tf.keras.layers.Dense(4)
            self.last = tf.keras.layers.Dense(1, "sigmoid", dtype="float32")

        def call(self, features: Any) -> Any:
            return self.last(self.hidden(features["fare_xf"]))

    return Lazy()


def test_a_model_is_built_and_the_policy_of_keras_stays():
    import tensorflow as tf

    from pipeline.training.build import build_model, model_inputs
    from pipeline.training.strategy.distribution import choose_distribution
    from tests.kit.small_training import FEATURES, OUTPUT

    model = build_model(
        f"{__name__}:lazy",
        {},
        model_inputs(FEATURES, OUTPUT),
        choose_distribution(settings()),
        precision="mixed_bfloat16",
    )

    shapes = [weight.shape.as_list() for weight in model.weights]
    assert shapes == [[1, 4], [4], [4, 1], [1]]
    assert model.dtype_policy.name == "mixed_bfloat16"
    assert model.hidden.compute_dtype == "bfloat16"
    assert tf.keras.mixed_precision.global_policy().name == "float32"


def test_autograph_leaves_keras_alone_and_converts_a_users_call():
    import tensorflow as tf
    import tf_keras
    from tensorflow.python.autograph.impl import conversion

    class Doubling(tf.keras.layers.Layer):
        def call(self, x):
            # A Python `if` on a tensor raises unless AutoGraph has converted it.
            if tf.reduce_sum(x) > 0:
                return x * 2
            return x

    exclude_keras_from_autograph()
    assert conversion.is_allowlisted(tf_keras.Model.fit)
    assert not conversion.is_allowlisted(Doubling.call)
    inputs = tf.keras.Input((1,))
    model = tf.keras.Model(inputs, Doubling()(inputs))
    model.compile(loss="mse")
    assert model.predict(tf.constant([[3.0]]), verbose=0).tolist() == [[6.0]]
    assert model.predict(tf.constant([[-3.0]]), verbose=0).tolist() == [[-3.0]]
