"""The models that come with Sluice learn, on the features that they are for."""

from __future__ import annotations

import importlib

import pytest

from tests.kit.trainings import feature_set, settings

pytestmark = pytest.mark.tf

IMAGE = {"kind": "image", "height": 4, "width": 4, "channels": 3}


def _inputs(*kinds: str, classes: tuple[int, ...] = (0, 1)):
    import tensorflow as tf

    from pipeline.training.models import ModelInputs

    specs = {kind: IMAGE if kind == "image" else kind for kind in kinds}
    specs |= {"sequence": {"kind": "text", "form": "sequence"}}
    specs = {kind: specs[kind] for kind in kinds}
    shapes = {"image": (4, 4, 3), "vector": (3,), "multi_hot": (5,)}
    shapes |= {"text": (7,), "sequence": (7,)}
    ids = ("hashed", "text", "sequence")
    return ModelInputs(
        feature_set(specs, classes),
        shapes={f"{k}_xf": shapes.get(k, (1,)) for k in kinds},
        dtypes={f"{k}_xf": tf.int64 if k in ids else tf.float32 for k in kinds},
        number_of_ids={f"{k}_xf": 5 for k in kinds if k in ids},
        units=1 if len(classes) == 2 else len(classes),
    )


def _learns(model, inputs, classes: int) -> None:
    """Asserts that a few steps on data with a rule make the loss smaller."""
    import tensorflow as tf

    from pipeline.training.compile import compile_model
    from pipeline.training.strategy.distribution import Distribution
    from sluice.patches.tensorflow import exclude_keras_from_autograph

    exclude_keras_from_autograph()
    tf.keras.utils.set_random_seed(1)
    labels = tf.range(64) % classes
    data = {}
    for name, shape in inputs.shapes.items():
        signal = tf.reshape(labels, [-1] + [1] * len(shape))
        signal = tf.broadcast_to(signal, [64, *shape])
        data[name] = tf.cast(signal, inputs.dtypes[name])
    compile_model(
        model,
        settings(epochs=12, learning_rate=0.01),
        inputs.feature_set.label,
        steps_per_epoch=4,
        distribution=Distribution(tf.distribute.get_strategy(), "one_device", "", 16),
    )
    history = model.fit(data, labels, epochs=12, batch_size=16, verbose=0).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    probabilities = model.predict(data, verbose=0)
    assert probabilities.shape == (64, 1 if classes == 2 else classes)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_cnn():
    from pipeline.training.models.cnn import build_model

    inputs = _inputs("image", classes=(0, 1, 2))
    _learns(build_model(inputs, {"filters": [8], "dropout": 0.0}), inputs, 3)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("dense", ("image",)),
        ("dense", ("text",)),
        ("dense", ("sequence",)),
        ("wide_deep", ("numeric", "hashed", "vector", "multi_hot")),
    ],
)
def test_dense_and_wide_deep(name, kinds):
    from pipeline.config.config import BUNDLED_MODELS

    inputs = _inputs(*kinds)
    module, _, function = BUNDLED_MODELS[name].partition(":")
    build_model = getattr(importlib.import_module(module), function)
    _learns(build_model(inputs, {"hidden_units": [16]}), inputs, 2)
