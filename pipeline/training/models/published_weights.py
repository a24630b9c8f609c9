"""Weights of ``tf.keras.applications`` as Keras publishes them, from local files.

Nothing is downloaded: a pipeline reads only what its config names. ``find_published``
says which file to fetch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest import mock

import h5py
import numpy as np
import tensorflow as tf

from sluice.errors import NodeError
from sluice.storage.local_copy import local_copy

# The most layers with weights that an application has above its feature map: the three
# dense layers of VGG.
_MAX_TOP_LAYERS = 3


@dataclass(frozen=True)
class PublishedWeights:
    """A file of ImageNet weights, without the top.

    Attributes:
      md5: of the content; None where Keras knows none.
    """

    name: str
    url: str
    md5: str | None


def find_published(application: str) -> PublishedWeights:
    """Returns the file that Keras would download for ``weights="imagenet"``.

    Names and digests are inside the functions of ``tf.keras.applications``, so the one
    asked for runs up to its download, which is replaced.
    """

    def get_file(
        fname: str, origin: str, file_hash: str | None = None, **_: Any
    ) -> NoReturn:
        raise _Found(PublishedWeights(fname, origin, file_hash))

    downloads = sys.modules[tf.keras.utils.get_file.__module__]
    build = getattr(tf.keras.applications, application)
    with mock.patch.object(downloads, "get_file", get_file):
        try:
            build(include_top=False, weights="imagenet")
        except _Found as found:
            return found.published
    raise AssertionError(f"{application} needs no download")


class _Found(Exception):
    def __init__(self, published: PublishedWeights) -> None:
        super().__init__(published.url)
        self.published = published


def load_published_weights(
    application: str, backbone: tf.keras.Model, path: str
) -> None:
    """Loads weights into an application that was built without its top.

    Layers are matched by position, as Keras does: names such as ``conv2d_7`` depend on
    what else a process has built. The file, in Keras' HDF5 format, is of weights or of
    a whole model; its top is ignored.

    Raises:
      NodeError: the file is damaged, or its layers are not those of the backbone.
    """
    try:
        with local_copy(path) as local, h5py.File(local) as file:
            found = list(_layers_of(file.get("model_weights", file)))
    except (OSError, KeyError, RuntimeError) as error:
        raise NodeError(
            "the file of weights cannot be read",
            where=path,
            expected="HDF5 as Keras publishes it and `save_weights('NAME.h5')` writes",
            actual=str(error).partition("\n")[0],
            hint="fetch it again",
        ) from error
    layers = [layer for layer in backbone.layers if layer.weights]
    differing = [
        f"layer {number}: {_describe(layer.name, variables)} in {backbone.name}, "
        f"{_describe(name, arrays)} in the file"
        for number, (layer, (name, arrays)) in enumerate(
            zip(layers, found, strict=False), 1
        )
        if _shapes(variables := _variables(layer)) != _shapes(arrays)
    ]
    top = len(found) - len(layers)
    if differing or not 0 <= top <= _MAX_TOP_LAYERS:
        raise NodeError(
            "the weights are of another model",
            where=path,
            expected=f"the {len(layers)} layers with weights of {backbone.name}, with "
            "or without its top",
            actual=f"{len(found)} layers, {len(differing)} of them with other shapes",
            examples=differing,
            hint="name the weights of this model in model_params.weights",
        )
    values = [
        pair
        for layer, (_, arrays) in zip(layers, found, strict=False)
        for pair in zip(_variables(layer), arrays, strict=True)
    ]
    tf.keras.backend.batch_set_value(values)
    _rescale_as_published(application, backbone)
    refresh_normalization(backbone)


def refresh_normalization(model: tf.keras.Model) -> None:
    """Lets normalization layers read their weights again, after these were set.

    They compute with copies (Keras' own ``load_weights`` does the same).
    """
    for layer in model.submodules:
        if isinstance(layer, tf.keras.layers.Normalization):
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


def _layers_of(group: Any) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yields name and weights of each layer that has weights, in order."""
    for name in _attribute(group, "layer_names"):
        weights = [
            group[name][item][()] for item in _attribute(group[name], "weight_names")
        ]
        if weights:
            yield name, weights


def _attribute(group: Any, name: str) -> list[str]:
    """Returns a list of names; one of more than 64 kB is split: name0, name1, ..."""
    if name in group.attrs:
        chunks = [group.attrs[name]]
    else:
        chunks = []
        while (key := f"{name}{len(chunks)}") in group.attrs:
            chunks.append(group.attrs[key])
        if not chunks:
            raise KeyError(f"it has no {name}")
    return [
        item.decode() if isinstance(item, bytes) else str(item)
        for chunk in chunks
        for item in chunk
    ]


def _variables(layer: Any) -> list[Any]:
    """Returns a layer's weights in the order of the format."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _shapes(weights: Any) -> list[list[int]]:
    return [list(weight.shape) for weight in weights]


def _describe(name: str, weights: Any) -> str:
    return f"{name} {', '.join(map(str, _shapes(weights)))}"
