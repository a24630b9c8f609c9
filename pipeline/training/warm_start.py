"""Warm start: initial weights from a model that was trained before.

The other model must have the same architecture: the same weights, by name and shape.
The state of its optimizer is not taken over.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline.training.models.published_weights import (
    load_weights,
    refresh_normalization,
)
from sluice import progress
from sluice.errors import NodeError
from sluice.storage.local_copy import local_copy


def warm_start(model: tf.keras.Model, source: str, base_model: str | None) -> None:
    """Sets the weights of a model to those of another, and reports it.

    The weights stay as they are if no model was found for ``train.warm_start``, the
    ``source``; else ``base_model`` is the path or address of a SavedModel of ours, or
    of a file that Keras' ``save_weights`` has written (``.h5``).

    Raises:
      NodeError: it cannot be read, or has another architecture.
    """
    if base_model is None:
        line = f"warm start: there is no model for '{source}' yet, weights are initial"
        progress.note(line, event="warm_start", source=source)
        return
    try:
        with local_copy(base_model) as path:
            if path.suffix == ".h5":
                load_weights(model, path)
            else:
                _load_saved_model(model, path)
    except (OSError, AttributeError, tf.errors.OpError) as error:
        reason = str(error).partition("\n")[0]
        raise NodeError(
            f"train.warm_start needs a SavedModel that Sluice has trained, or a .h5 "
            f"file of weights: {reason}",
            where=base_model,
        ) from error
    refresh_normalization(model)
    line = f"warm start: weights of {source}, {base_model}"
    progress.note(line, event="warm_start", source=source, base_model=base_model)


def _load_saved_model(model: tf.keras.Model, path: Path) -> None:
    # Not by position: the order depends on which layers are frozen.
    own = _by_name(model.variables)
    base = _by_name(tf.saved_model.load(str(path)).variables_of_model)
    if differing := sorted(own.keys() ^ base.keys()):
        raise NodeError(
            "the model to start from has another architecture",
            where=path,
            expected="the same weights; these are in one of the models only",
            examples=[f"{name} {shape}" for name, shape in differing],
            hint="undo the change of the model, or set train.warm_start to null to "
            "train it from random weights",
        )
    tf.keras.backend.batch_set_value(
        [(variable, base[key].numpy()) for key, variable in own.items()]
    )


def _by_name(variables: Any) -> dict[tuple[str, str], Any]:
    """Returns variables by name and shape; a second one of a name gets a number."""
    seen: Counter[str] = Counter()
    found = {}
    for variable in variables:
        name = variable.name.partition(":")[0]
        seen[name] += 1
        number = f" ({seen[name]})" if seen[name] > 1 else ""
        found[name + number, str(list(variable.shape))] = variable
    return found
