"""Which models a checkpoint can be restored into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice.compat import exclude_keras_from_autograph
from sluice.errors import NodeError

pytestmark = pytest.mark.tf


def _model(*units: int, layers: tuple[Any, ...] = ()) -> Any:
    import tensorflow as tf

    inputs = tf.keras.Input((2,))
    x = inputs
    for layer in layers:
        x = layer(x)
    for count in units:
        x = tf.keras.layers.Dense(count)(x)
    return tf.keras.Model(inputs, x)


def _checkpoint(model: Any, directory: Path) -> tuple[Any, list[Any]]:
    """Compiles a model; returns its checkpoint and its callbacks."""
    import tensorflow as tf

    from pipeline.training.checkpoint import Checkpoint, CheckpointSettings

    exclude_keras_from_autograph()
    model.compile("adam", "mse")
    others = [tf.keras.callbacks.History()]
    settings = CheckpointSettings(str(directory), epochs=2, steps_per_epoch=1)
    checkpoint = Checkpoint(settings, model, others)
    return checkpoint, [*others, checkpoint]


def _fit(model: Any, directory: Path) -> Any:
    import tensorflow as tf

    _, callbacks = _checkpoint(model, directory)
    data = tf.data.Dataset.from_tensor_slices(([[1.0, 2.0]], [[1.0]])).batch(1)
    model.fit(data, epochs=2, callbacks=callbacks, verbose=0)
    return model


def _restore(model: Any, directory: Path) -> Any:
    checkpoint, _ = _checkpoint(model, directory)
    assert checkpoint.find()
    checkpoint.begin_phase(0)
    return model


@pytest.mark.parametrize("units", [(3, 2, 1), (4, 1), (3,)])
def test_a_checkpoint_of_another_model_is_refused(tmp_path, units):
    _fit(_model(3, 1), tmp_path)
    with pytest.raises(NodeError, match="the checkpoint is of another model") as caught:
        _restore(_model(*units), tmp_path)
    assert caught.value.where == str(tmp_path / "ckpt-2")
    assert "sluice run" in str(caught.value)


def test_a_model_with_a_lookup_table_is_restored(tmp_path):
    import tensorflow as tf

    def build() -> Any:
        lookup = tf.keras.layers.IntegerLookup(vocabulary=[1, 2])
        layers = (lookup, tf.keras.layers.CategoryEncoding(3))
        return _model(1, layers=layers)

    saved = _fit(build(), tmp_path)
    restored = _restore(build(), tmp_path)
    assert _lists(restored) == _lists(saved)


def _lists(model: Any) -> list[Any]:
    return [weight.tolist() for weight in model.get_weights()]
