"""Models that a format cannot hold, and the description of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice.errors import NodeError
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.tf


def inner(call: Any) -> Any:
    """Returns a model of one number, whose output ``call`` makes from the input."""
    import tensorflow as tf

    from pipeline.training.exports.export_fn import with_listed_inputs

    given = tf.keras.Input((1,), name="fare_xf")
    model = tf.keras.Model({"fare_xf": given}, call(given))
    listed, used = with_listed_inputs(model, ["other_xf", "fare_xf"])
    assert used == {"fare_xf": "fare_xf"}
    return listed


def test_inputs_are_told_apart_whatever_their_names(tmp_path):
    import tensorflow as tf

    from pipeline.training.exports.export_fn import with_listed_inputs
    from pipeline.training.exports.tflite import load_tflite, write_tflite
    from pipeline.training.models import ModelInputs

    names = ("A_xf", "a_xf", "年龄_xf", "收入_xf", "b 1_xf")
    inputs = ModelInputs(
        feature_set({}),
        shapes=dict.fromkeys(names, (1,)),
        dtypes=dict.fromkeys(names, tf.float32),
        number_of_ids={},
        units=1,
    ).keras_inputs()
    total = tf.keras.layers.Lambda(lambda x: tf.add_n([i * v for i, v in enumerate(x)]))
    model = tf.keras.Model(inputs, total([*inputs.values()]))

    listed, used = with_listed_inputs(model, [*names])
    rows = {used[x]: np.full((1, 1), 10.0**i, np.float32) for i, x in enumerate(names)}
    write_tflite(listed, tmp_path / "model", "prediction", "none", rows)

    assert [*used] == [*names]
    assert used["b 1_xf"] == "b_1_xf"
    assert load_tflite(tmp_path / "model")(rows) == [[43210.0]]


def test_a_subclass_of_a_keras_model_is_refused_but_may_be_a_layer():
    import tensorflow as tf

    from pipeline.training.exports.export_fn import with_listed_inputs

    class Doubling(tf.keras.Model):
        def call(self, features: Any) -> Any:
            return features * 2.0

    with pytest.raises(NodeError, match="a subclass of keras.Model"):
        with_listed_inputs(Doubling(), ["fare_xf"])
    assert inner(Doubling())([np.array([[3.0]])]).numpy() == [[6.0]]


@pytest.mark.acceptance
def test_a_layer_of_the_users_own_is_no_tfjs_layer(tmp_path, tfjs_environment):
    import tensorflow as tf

    from pipeline.training.exports.tfjs import write_tfjs

    @tf.keras.utils.register_keras_serializable("test")
    class Own(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x * 2.0

    model, given = inner(Own()), {"fare_xf": np.ones((1, 1), np.float32)}
    with pytest.raises(NodeError, match=r"cannot convert the model: .*test>Own"):
        write_tfjs(model, tmp_path / "tfjs", given)


@pytest.mark.parametrize(
    ("scaled", "found"),
    [
        (lambda x: (x - 5.0) / 2.0, ([5.0], [2.0])),
        (lambda x: (x - 1e6) / 1e5, ([1e6], [1e5])),
        (np.tanh, None),
        (lambda x: x * 0.0, None),
    ],
    ids=["z-score", "far from 0", "not linear", "constant"],
)
def test_mean_and_deviation_are_those_of_the_examples(scaled, found):
    from pipeline.training.exports.signature import _z_score

    raw = np.array([[1.0], [1e6 + 7], [40.0], [np.nan]])
    about = _z_score(raw, np.nan_to_num(scaled(raw)).astype(np.float32))
    if found is None:
        assert about is None
    else:
        assert about is not None
        shown = about["mean"], about["deviation"]
        np.testing.assert_allclose(shown, found, rtol=1e-2)
