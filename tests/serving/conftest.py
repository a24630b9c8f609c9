"""Fixtures: two real SavedModels."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

IMAGE_CLASSES = ["dark", "grey", "bright"]
TABULAR_CLASSES = ["no", "yes"]


@pytest.fixture(scope="session")
def tf() -> ModuleType:
    """TensorFlow, imported the way that the product imports it."""
    from sluice.compat import prepare_environment

    prepare_environment()
    import tensorflow

    return tensorflow


@pytest.fixture(scope="session")
def image_model_dir(tf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel that calls an image dark, grey or bright."""

    class Brightness(tf.Module):
        def __init__(self):
            super().__init__()
            self.centres = tf.Variable([0.0, 0.5, 1.0])
            self.classes = tf.constant(IMAGE_CLASSES)

        def _one(self, image):
            pixels = tf.io.decode_image(image, channels=1, expand_animations=False)
            return tf.reduce_mean(tf.cast(pixels, tf.float32)) / 255.0

        def _predict(self, images):
            means = tf.map_fn(self._one, images, fn_output_signature=tf.float32)
            logits = -20.0 * tf.abs(means[:, None] - self.centres[None, :])
            return {
                "probabilities": tf.nn.softmax(logits),
                "label": tf.gather(self.classes, tf.argmax(logits, axis=1)),
            }

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="image")])
        def values(self, image):
            return self._predict(image)

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string, name="examples")]
        )
        def examples(self, examples):
            spec = {"image": tf.io.FixedLenFeature([], tf.string)}
            return self._predict(tf.io.parse_example(examples, spec)["image"])

    root = tmp_path_factory.mktemp("image") / "1"
    return save_model(tf, Brightness(), root, IMAGE_CLASSES, ["image"])


@pytest.fixture(scope="session")
def tabular_model_dir(tf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A binary SavedModel: sigmoid(miles + 2 riders + 0.5 [cash]), with classes.json.

    A missing value adds -0.25.
    """

    class Tips(tf.Module):
        def __init__(self):
            super().__init__()
            self.weights = tf.Variable([1.0, 2.0, 0.5])
            self.classes = tf.constant(TABULAR_CLASSES)

        def _predict(self, miles, riders, payment):
            columns = [
                (tf.math.is_nan(miles), miles),
                (riders == tf.int64.min, tf.cast(riders, tf.float32)),
                (payment == "", tf.cast(payment == "Cash", tf.float32)),
            ]
            logit = tf.add_n(
                [
                    tf.where(missing, -0.25, self.weights[i] * value)
                    for i, (missing, value) in enumerate(columns)
                ]
            )
            return {
                "probabilities": tf.sigmoid(logit)[:, None],
                "label": tf.gather(self.classes, tf.cast(logit > 0.0, tf.int64))[
                    :, None
                ],
            }

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.float32, name="miles"),
                tf.TensorSpec([None], tf.int64, name="riders"),
                tf.TensorSpec([None], tf.string, name="payment"),
            ]
        )
        def values(self, miles, riders, payment):
            return self._predict(miles, riders, payment)

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string, name="examples")]
        )
        def examples(self, examples):
            spec = {
                "miles": tf.io.FixedLenFeature([], tf.float32, float("nan")),
                "riders": tf.io.FixedLenFeature([], tf.int64, tf.int64.min),
                "payment": tf.io.FixedLenFeature([], tf.string, ""),
            }
            return self._predict(**tf.io.parse_example(examples, spec))

    root = tmp_path_factory.mktemp("tabular") / "1"
    inputs = ["miles", "riders", "payment"]
    return save_model(tf, Tips(), root, TABULAR_CLASSES, inputs)


def save_model(
    tf: ModuleType,
    module,
    root: Path,
    classes: list[str],
    inputs: list[str],
    task="classification",
) -> Path:
    """Saves a module with ``examples`` and ``values``, as our trainer does."""
    signatures = {"serving_default": module.examples, "predict_values": module.values}
    tf.saved_model.save(module, str(root), signatures=signatures)
    features = {name: {"input": name, "required": False} for name in inputs}
    about = {"task": task, "classes": classes, "features": features}
    (root / "assets.extra").mkdir()
    (root / "assets.extra" / "classes.json").write_text(json.dumps(about))
    return root
