"""Training step 2: a model that Keras may trace."""

from __future__ import annotations

import pytest

from sluice.compat import exclude_keras_from_autograph

pytestmark = pytest.mark.tf


def test_autograph_leaves_keras_alone_and_converts_a_users_call() -> None:
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
