"""Models of ``tf.keras.applications``: names, preprocessing, weights from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice.errors import NodeError
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.tf

SMALL = "MobileNet"


def _inputs(channels: int = 3) -> Any:
    import tensorflow as tf

    from pipeline.training.models import ModelInputs

    image = {"kind": "image", "height": 32, "width": 32, "channels": channels}
    return ModelInputs(
        feature_set({"x": image}, (0, 1, 2)),
        shapes={"x_xf": (32, 32, channels)},
        dtypes={"x_xf": tf.float32},
        number_of_ids={},
        units=3,
    )


def _build(name: str, channels: int = 3, **params: Any) -> Any:
    from pipeline.training.models import application

    return getattr(application, name)(_inputs(channels), params)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights as Keras publishes them, of an application without its top."""
    path = tmp_path_factory.mktemp("weights") / "no_top.h5"
    _build(SMALL).get_layer("mobilenet_1.00_32").save_weights(path)
    return path


def test_images_are_converted_as_each_family_expects():
    import tensorflow as tf

    from pipeline.training.models.application import Preprocess

    pixels = np.random.default_rng(1).integers(0, 256, (2, 5, 5, 3)).astype("float32")
    families = {}
    for name in (name for name in vars(tf.keras.applications) if name[0].isupper()):
        module = getattr(tf.keras.applications, name).__module__.rpartition(".")[2]
        families[module] = name
    scales = set()
    for family, name in families.items():
        expected = getattr(tf.keras.applications, family).preprocess_input(
            pixels.copy()
        )
        layer = Preprocess.from_config(Preprocess(name).get_config())
        jit = name in ("VGG16", "DenseNet201", "MobileNetV2", "EfficientNetB7")
        converted = tf.function(layer, jit_compile=jit)(pixels / 255.0)
        np.testing.assert_allclose(converted, expected, atol=2e-4, err_msg=name)
        scales.add(round(float(expected.min())))
    assert len(scales) > 2, "the families differ"


def test_weights_are_those_of_the_file(weights):
    built = [_build(SMALL, weights=str(weights)) for _ in range(2)]
    backbones = [model.get_layer("mobilenet_1.00_32") for model in built]
    for first, second in zip(*(item.get_weights() for item in backbones), strict=True):
        np.testing.assert_array_equal(first, second)
    heads = [model.layers[-1].get_weights()[0] for model in built]
    assert (heads[0] != heads[1]).any(), "they are random"


def test_efficientnet_is_rescaled_as_keras_does_for_its_published_weights(tmp_path):
    import tensorflow as tf

    from pipeline.training.models.published_weights import load_published_weights

    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Normalization()])
    mean, deviation = [0.485, 0.456, 0.406], np.array([0.229, 0.224, 0.225])
    for weight, value in zip(model.weights, (mean, deviation**2, 0), strict=True):
        weight.assign(value)
    path = tmp_path / "weights.h5"
    model.save_weights(path)
    load_published_weights("EfficientNetB0", model, str(path))
    pixels = np.random.default_rng(4).random((5, 3), dtype="float32")
    # Keras adds Rescaling(1 / sqrt(deviation)) after its normalization.
    expected = (pixels - mean) / deviation / np.sqrt(deviation)
    np.testing.assert_allclose(model(pixels), expected, rtol=1e-4)


def test_weights_of_another_model_are_refused_with_the_layer(weights):
    with pytest.raises(NodeError, match="conv1|Layer count mismatch") as caught:
        _build("VGG16", weights=str(weights))
    assert caught.value.where == str(weights)
