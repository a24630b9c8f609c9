"""Models of ``tf.keras.applications``: names, preprocessing, weights from files."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pipeline.config.train import ApplicationParams
from pipeline.config.validate import SMALLEST_IMAGE
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
    )


def _build(name: str, channels: int = 3, **params: Any) -> Any:
    from pipeline.training.models import application

    return getattr(application, name)(_inputs(channels), params)


def _create(**options: Any) -> Any:
    import tensorflow as tf

    options = {"weights": None, "input_shape": (32, 32, 3), **options}
    return getattr(tf.keras.applications, SMALL)(**options)


def _random_weights(model: Any) -> list[np.ndarray]:
    """Returns other weights than a new model's; the first are the same for the top."""
    random = np.random.default_rng(3)
    return [random.uniform(0.1, 0.2, weight.shape) for weight in model.weights]


@pytest.fixture(scope="module")
def backbone() -> Any:
    """An application without its top."""
    return _create(include_top=False)


@pytest.fixture(scope="module")
def with_top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights as Keras publishes them, of an application with its top."""
    path = tmp_path_factory.mktemp("weights") / "with_top.h5"
    model = _create(classes=7)
    model.set_weights(_random_weights(model))
    model.save_weights(path)
    return path


def test_the_smallest_image_of_each_application():
    import tensorflow as tf

    found = {}
    for name, build in vars(tf.keras.applications).items():
        if callable(build) and name[0].isupper():
            with pytest.raises(ValueError, match="at least") as caught:
                build(weights=None, include_top=False, input_shape=(8, 8, 3))
            size = re.search(r"at least (\d+)x\1", str(caught.value))
            assert size is not None
            found[name] = int(size[1])
    assert found == {name: SMALLEST_IMAGE.get(name, 32) for name in found}


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


def test_gray_images_are_repeated_and_precision_is_kept():
    import tensorflow as tf

    from pipeline.training.models.application import Preprocess

    gray = np.random.default_rng(2).random((2, 5, 5, 1), dtype="float32")
    layer = Preprocess("VGG16")
    np.testing.assert_array_equal(layer(gray), layer(np.repeat(gray, 3, axis=-1)))
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        np.testing.assert_array_equal(Preprocess("VGG16")(gray), layer(gray))
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


def test_a_model_has_its_head_and_a_gradient_for_every_weight():
    import tensorflow as tf

    model = _build(SMALL, channels=1, head=[5, 4], dropout=0.5, pooling="max")
    images = tf.random.stateless_uniform((2, 32, 32, 1), (1, 2))
    with tf.GradientTape() as tape:
        output = model({"x_xf": images})
        first = output[:, 0]
    assert output.shape == (2, 3)
    np.testing.assert_allclose(tf.reduce_sum(output, axis=1), [1, 1], rtol=1e-5)
    gradients = tape.gradient(first, model.trainable_weights)
    assert None not in gradients
    units = [layer.units for layer in model.layers if hasattr(layer, "units")]
    assert units == [5, 4, 3]


def test_the_defaults_are_those_of_the_config():
    shapes = [
        [layer.output_shape for layer in _build("VGG16", **params).layers]
        for params in ({}, ApplicationParams().model_dump())
    ]
    assert shapes[0] == shapes[1]


def test_weights_with_and_without_top_are_those_of_keras(with_top, backbone, tmp_path):
    from pipeline.training.models.published_weights import load_published_weights

    expected = [value.astype("float32") for value in _random_weights(backbone)]
    load_published_weights(SMALL, backbone, str(with_top))
    for weight, value in zip(backbone.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(weight, value)

    backbone.save_weights(tmp_path / "no_top.h5")
    backbone.save(tmp_path / "model.h5")
    for name in ("no_top.h5", "model.h5"):
        backbone.set_weights([np.zeros_like(value) for value in expected])
        load_published_weights(SMALL, backbone, str(tmp_path / name))
        for weight, value in zip(backbone.get_weights(), expected, strict=True):
            np.testing.assert_array_equal(weight, value)


def test_efficientnet_is_what_keras_makes_of_its_published_weights(
    tmp_path, monkeypatch
):
    import tensorflow as tf

    from pipeline.training.models.published_weights import load_published_weights

    build = tf.keras.applications.EfficientNetB0
    options = {"include_top": False, "input_shape": (32, 32, 3)}
    source = build(weights=None, **options)
    (normalization,) = (
        layer
        for layer in source.layers
        if isinstance(layer, tf.keras.layers.Normalization)
    )
    # As in the published file, which cannot be had here.
    normalization.set_weights(
        [
            np.array(value, weight.dtype.as_numpy_dtype)
            for weight, value in zip(
                normalization.weights,
                ([0.485, 0.456, 0.406], [0.229**2, 0.224**2, 0.225**2], 0),
                strict=True,
            )
        ]
    )
    path = str(tmp_path / "weights.h5")
    source.save_weights(path)
    downloads = sys.modules[tf.keras.utils.get_file.__module__]
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "get_file", lambda *args, **kwargs: path)
        published = build(weights="imagenet", **options)
    image = np.random.default_rng(4).random((1, 32, 32, 3), dtype="float32") * 255
    before = source(image)
    load_published_weights("EfficientNetB0", source, path)

    expected = published(image)
    np.testing.assert_allclose(source(image), expected, rtol=1e-2, atol=1e-9)
    assert not np.allclose(before, expected, rtol=0.1, atol=1e-9)


def test_weights_of_another_model_name_the_layers(with_top):
    with pytest.raises(NodeError) as caught:
        _build("VGG16", weights=str(with_top))
    message = str(caught.value)
    assert "the weights are of another model" in message
    assert "layer 1: block1_conv1 [3, 3, 3, 64], [64] in vgg16" in message
    assert "conv1 [3, 3, 3, 32] in the file" in message
    assert len(caught.value.examples) > 5


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "layer", "format"])
def test_a_damaged_file_of_weights_is_named(with_top, backbone, tmp_path, damage):
    from pipeline.training.models.published_weights import load_published_weights

    path = tmp_path / "damaged.h5"
    data = with_top.read_bytes()
    path.write_bytes(data)
    if damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("<html>not found</html>")
    elif damage == "layer":
        with h5py.File(path, "a") as file:
            del file["conv1"]
    else:
        with h5py.File(path, "a") as file:
            del file.attrs["layer_names"]
    with pytest.raises(NodeError, match="the file of weights cannot be read") as caught:
        load_published_weights(SMALL, backbone, str(path))
    assert caught.value.where == str(path)


def test_the_published_file_is_named_as_keras_knows_it():
    from tf_keras.src.applications import mobilenet_v2, vgg16

    from pipeline.training.models.published_weights import find_published

    found = find_published("VGG16")
    assert found.url == vgg16.WEIGHTS_PATH_NO_TOP
    assert found.url.endswith(found.name)
    assert found.md5 and found.md5 in inspect.getsource(vgg16.VGG16)
    found = find_published("MobileNetV2")
    assert found.url.startswith(mobilenet_v2.BASE_WEIGHT_PATH)
    assert found.md5 is None
