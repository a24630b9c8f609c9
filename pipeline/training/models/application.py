"""Models of ``tf.keras.applications`` by name, such as ``VGG16``, for one image.

``model: VGG16`` in a config. The pretrained part is a layer of the model by itself, a
Keras model as Keras builds it, so that ``train.fine_tune`` can freeze it as
``backbone``.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from pipeline.training.models import ModelInputs
from pipeline.training.models.published_weights import load_published_weights


def __getattr__(name: str) -> Any:
    """Returns the function ``build_model`` of one application."""
    if not name.startswith("_") and hasattr(tf.keras.applications, name):
        return functools.partial(build_model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def build_model(
    application: str, inputs: ModelInputs, params: dict[str, Any]
) -> tf.keras.Model:
    """Returns the model.

    Args:
      application: its name.
      inputs: the transformed features, exactly one image of 1 or 3 channels.
      params: ``weights`` (path of a local file, or None), ``pooling`` (``avg``,
        ``max``; None flattens), ``head`` (units of dense layers) and ``dropout``
        (fraction, before the output).

    Raises:
      NodeError: the file of weights is damaged, or of another model.
      ValueError: the image is too small for the application.
    """
    keras_inputs = inputs.keras_inputs()
    ((name, image),) = inputs.feature_set.images.items()
    backbone = getattr(tf.keras.applications, application)(
        include_top=False,
        weights=None,
        input_shape=(image.height, image.width, 3),
        pooling=params.get("pooling", "avg"),
    )
    if weights := params.get("weights"):
        load_published_weights(application, backbone, weights)
    layers = tf.keras.layers
    x = backbone(Preprocess(application)(keras_inputs[name]))
    x = layers.Flatten()(x)
    for units in params.get("head", []):
        x = layers.Dense(units, activation="relu")(x)
    x = layers.Dropout(params.get("dropout", 0.0))(x)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(x))


@tf.keras.utils.register_keras_serializable("sluice")
class Preprocess(tf.keras.layers.Layer):
    """Converts images to what an application takes, by its own ``preprocess_input``.

    Takes float images ``[batch, height, width, 1 or 3]`` of 0..1; gray ones are
    repeated in three channels. Computes in float32 under any precision: 16 bits are too
    few for 0..255 less a mean.
    """

    def __init__(self, application: str, **kwargs: Any) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self._application = application
        function = getattr(tf.keras.applications, application)
        # Such as tf_keras.src.applications.vgg16.
        family = function.__module__.rpartition(".")[2]
        self._convert = getattr(tf.keras.applications, family).preprocess_input

    def call(self, images: Any) -> Any:
        """Returns float32 ``[batch, height, width, 3]``."""
        if images.shape[-1] == 1:
            images = tf.image.grayscale_to_rgb(images)
        return self._convert(images * 255.0)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "application": self._application}
