"""Fine-tuning: which layers of a model are trained, and which are frozen.

Works on any Keras model, nested ones too. A frozen layer's weights do not change, and
frozen batch normalization uses its stored statistics in training as well (``trainable``
of Keras). ``freeze`` and ``unfreeze`` take effect at the next ``compile``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import tensorflow as tf

from sluice.errors import NodeError, did_you_mean

# Stands for all layers of the models that a model contains, such as a pretrained one.
BACKBONE = "backbone"


def freeze(model: tf.keras.Model, patterns: Sequence[str]) -> None:
    """Freezes layers.

    Args:
      model: of any structure.
      patterns: names of layers at any depth, ``*`` and ``?`` as in file names, or
        ``backbone``. A layer's own layers are frozen with it.

    Raises:
      NodeError: a pattern matches no layer, or no weight is left to train.
    """
    for layer in _matching(model, patterns):
        layer.trainable = False
    if not model.trainable_weights:
        raise NodeError(
            "all layers are frozen, so there is nothing to train",
            where="train.fine_tune.freeze",
            actual=", ".join(patterns),
            hint="freeze fewer layers; the last one should be trained",
        )


def unfreeze(model: tf.keras.Model, patterns: Sequence[str]) -> None:
    """Makes the layers that ``freeze`` froze trainable, but for batch normalization.

    Its statistics are those of the pretraining; the small batches of a fine-tuning
    would replace them before the other weights have adapted.
    """
    matching = _matching(model, patterns)
    for layer in matching:
        layer.trainable = True
    parts: list[Any] = [part for layer in matching for part in layer.submodules]
    for part in (*matching, *parts):
        if isinstance(part, _batch_normalization()):
            part.trainable = False


def parameter_counts(model: tf.keras.Model) -> dict[str, int]:
    """Returns the numbers of ``trainable`` and ``frozen`` parameters.

    As in Keras' summary, the statistics of batch normalization are never trainable.
    """
    return {
        "trainable": _count(model.trainable_weights),
        "frozen": _count(model.non_trainable_weights),
    }


def _count(weights: Sequence[Any]) -> int:
    return sum(weight.shape.num_elements() for weight in weights)


def _batch_normalization() -> Any:
    layers = tf.keras.layers
    return (layers.BatchNormalization, layers.experimental.SyncBatchNormalization)


def _matching(model: tf.keras.Model, patterns: Sequence[str]) -> list[Any]:
    layers: list[Any] = [
        item
        for item in model.submodules
        if isinstance(item, tf.keras.layers.Layer)
        and not isinstance(item, tf.keras.metrics.Metric)
    ]
    found: list[Any] = []
    for pattern in patterns:
        matching = [item for item in layers if fnmatchcase(item.name, pattern)]
        if pattern == BACKBONE:
            matching += [item for item in layers if isinstance(item, tf.keras.Model)]
        if not matching:
            names = [layer.name for layer in layers if layer.weights]
            raise NodeError(
                "the model contains no other model"
                if pattern == BACKBONE
                else f"no layer is named {pattern!r}",
                where="train.fine_tune.freeze",
                expected="names of layers, * and ? as in file names",
                examples=names,
                hint=did_you_mean(pattern, names),
            )
        found += matching
    return found
