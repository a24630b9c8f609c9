"""The exported model's signatures, on models that are hard to export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.feature_set import Feature, FeatureSet, Label

pytestmark = pytest.mark.tf

FEATURES = FeatureSet(
    (Feature("a", "numeric"), Feature("self", "numeric"), Feature("b/1 c", "numeric")),
    Label("y", ("low", "high")),
)


class Output:
    """The parts of TFTransformOutput that the export uses; a becomes a_xf as it is."""

    def raw_feature_spec(self) -> dict[str, Any]:
        import tensorflow as tf

        return {
            "a": tf.io.VarLenFeature(tf.float32),
            "self": tf.io.FixedLenFeature([1], tf.float32),
            "b/1 c": tf.io.VarLenFeature(tf.int64),
            "unused": tf.io.FixedLenFeature([1], tf.string),
            "y": tf.io.FixedLenFeature([1], tf.string),
        }

    def transform_features_layer(self):
        import tensorflow as tf

        return lambda raw: {"a_xf": tf.sparse.to_dense(raw["a"])}


def _export(build, directory: Path):
    import tensorflow as tf

    from pipeline.export import export_model

    inputs = tf.keras.Input((1,), name="a_xf")
    model = tf.keras.Model({"a_xf": inputs}, build(inputs))
    export_model(model, Output(), FEATURES, str(directory))
    return tf.saved_model.load(str(directory))


def _others(count: int) -> dict[str, Any]:
    import tensorflow as tf

    return {"feature_self": tf.zeros([count]), "b_1_c": tf.zeros([count], tf.int64)}


def test_a_call_with_python_control_flow_is_exported(tmp_path: Path) -> None:
    import tensorflow as tf

    class Sign(tf.keras.layers.Layer):
        def call(self, x):
            if tf.reduce_sum(x) > 0:
                return tf.ones_like(x)
            return tf.zeros_like(x)

    predict = _export(lambda x: Sign()(x), tmp_path).signatures["predict_values"]
    for value, label in [(3.0, b"high"), (-3.0, b"low")]:
        answer = predict(a=tf.constant([value]), **_others(1))
        assert answer["label"].numpy().tolist() == [label]
        assert answer["probabilities"].shape == (1, 1)


def test_a_lookup_table_inside_the_model_is_exported(tmp_path: Path) -> None:
    import tensorflow as tf

    def build(x):
        ids = tf.keras.layers.IntegerLookup(vocabulary=[7, 8])(tf.cast(x, tf.int64))
        return tf.cast(ids, tf.float32) / 2.0

    predict = _export(build, tmp_path).signatures["predict_values"]
    answer = predict(a=tf.constant([7.0, 8.0, 9.0]), **_others(3))
    assert answer["probabilities"].numpy().tolist() == [[0.5], [1.0], [0.0]]


def test_signatures_name_only_what_the_model_uses(tmp_path: Path) -> None:
    loaded = _export(lambda x: x, tmp_path)
    _, values = loaded.signatures["predict_values"].structured_input_signature
    assert sorted(values) == ["a", "b_1_c", "feature_self"]
    assert (tmp_path / "assets.extra" / "classes.json").is_file()
