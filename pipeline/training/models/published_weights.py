"""Weights of ``tf.keras.applications`` as Keras publishes them, from local files.

Nothing is downloaded: a pipeline reads only what its config names.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.keras_of import keras_of, layers_in
from sluice.errors import NodeError
from sluice.storage.local_copy import local_copy


def load_published_weights(
    application: str, backbone: tf.keras.Model, path: str
) -> None:
    """Loads weights into an application that was built without its top.

    Layers are matched by position, as Keras does: names such as ``conv2d_7`` depend on
    what else a process has built.

    Raises:
      NodeError: the file is damaged, or its layers are not those of the backbone.
    """
    with local_copy(path) as local:
        load_weights(backbone, local)
    _rescale_as_published(application, backbone)
    refresh_normalization(backbone)


def load_weights(model: Any, path: Path) -> None:
    """Loads a file that ``save_weights`` has written, by Keras.

    Raises:
      NodeError: Keras refuses it, and names the layer.
    """
    try:
        model.load_weights(str(path))
    except Exception as error:  # h5py's and Keras' are of many kinds.
        reason = " ".join(str(error).split())
        raise NodeError(
            f"the weights do not fit the model, or the file is damaged: {reason:.500}",
            where=path,
        ) from error


def refresh_normalization(model: Any) -> None:
    """Lets normalization layers read their weights again, after these were set.

    They compute with copies (Keras' own ``load_weights`` does the same).
    """
    for layer in layers_in(model):
        if isinstance(layer, keras_of(model).layers.Normalization):
            layer.finalize_state()


def _rescale_as_published(application: str, backbone: tf.keras.Model) -> None:
    """Divides by the root of ImageNet's standard deviation where Keras does.

    With ``weights="imagenet"`` Keras adds this step to EfficientNet's normalization, as
    the published weights were trained with it, but not when it is given their file
    (tensorflow/tensorflow#49930). The variance that is set here has the same effect.
    """
    module = sys.modules[getattr(tf.keras.applications, application).__module__]
    deviation = getattr(module, "IMAGENET_STDDEV_RGB", None)
    if deviation is None:
        return
    for layer in backbone.layers:
        if isinstance(layer, tf.keras.layers.Normalization):
            variance = layer.adapt_variance.numpy()
            if np.allclose(variance, np.square(deviation), rtol=1e-3):
                layer.adapt_variance.assign(variance * deviation)
