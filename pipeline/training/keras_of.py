"""Which Keras a model is of: ``tf.keras``, which is tf_keras here, or Keras 3.

Both can be used in one process. What is made for a model, such as its optimizer, must
be of its own Keras.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from sluice.patches.keras import nested_layers


def keras_of(model: Any) -> Any:
    """Returns the module ``tf.keras``, or ``keras`` for a model of Keras 3.

    Raises:
      TypeError: it is a model of neither.
    """
    if isinstance(model, tf.keras.Model):
        return tf.keras
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(model, keras.Model):
        raise TypeError(f"{model!r:.80} is a model of neither tf.keras nor Keras 3")
    return keras


def is_keras_3(model: Any) -> bool:
    """Whether a model is of Keras 3."""
    return keras_of(model) is not tf.keras


def layers_in(model: Any) -> list[Any]:
    """Returns the layers of a model or of a layer, at any depth."""
    if isinstance(model, tf.Module):
        return [
            part
            for part in model.submodules
            if isinstance(part, tf.keras.layers.Layer)
            and not isinstance(part, tf.keras.metrics.Metric)
        ]
    return nested_layers(model)


def as_tf(variables: Iterable[Any]) -> list[Any]:
    """Returns variables as TensorFlow has them: those of Keras 3 wrap one."""
    return [x if isinstance(x, tf.Variable) else x.value for x in variables]


def weight_name(weight: Any) -> str:
    """Returns the name of a weight, without the number of its output."""
    return str(getattr(weight, "path", weight.name)).partition(":")[0]


def by_name(weights: Iterable[Any]) -> dict[str, Any]:
    """Returns weights by name; a second one of a name gets a number."""
    seen: Counter[str] = Counter()
    named = {}
    for weight in weights:
        name = weight_name(weight)
        seen[name] += 1
        number = f" ({seen[name]})" if seen[name] > 1 else ""
        named[name + number] = weight
    return named
