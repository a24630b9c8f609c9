"""Warm start: initial weights from a model that was trained before.

The other model must have the same architecture: the same weights, by name and shape.
The state of its optimizer is not taken over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import tensorflow as tf

from pipeline.training.models.published_weights import refresh_normalization
from sluice import progress
from sluice.errors import NodeError
from sluice.storage.local_copy import local_copy

Shapes = Mapping[str, list[int]]


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
                _load_file(model, path)
            else:
                _load_saved_model(model, path)
    except (OSError, AttributeError, tf.errors.OpError) as error:
        raise NodeError(
            "the model to start from cannot be read",
            where=base_model,
            expected="a SavedModel that Sluice has trained, or a .h5 file of weights",
            actual=str(error).partition("\n")[0],
            hint="name another model in train.warm_start, or null for random weights",
        ) from error
    refresh_normalization(model)
    line = f"warm start: weights of {source}, {base_model}"
    progress.note(line, event="warm_start", source=source, base_model=base_model)


def _load_saved_model(model: tf.keras.Model, path: Path) -> None:
    saved = tf.saved_model.load(str(path))
    found = _by_name(saved.variables_of_model)
    variables = _by_name(model.variables)
    _check_same(_shapes(variables), _shapes(found), path)
    tf.keras.backend.batch_set_value(
        [(variables[name], found[name].numpy()) for name in variables]
    )


def _load_file(model: tf.keras.Model, path: Path) -> None:
    """Loads weights from HDF5, whose layout depends on the model.

    What the model itself would write is therefore compared with the file.
    """
    found = _shapes_in(path)
    is_v3 = any("/vars/" in name for name in found)
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "model.weights.h5" if is_v3 else "weights.h5")
        model.save_weights(str(own))
        _check_same(_shapes_in(own), found, path)
        named = Path(folder, "given.weights.h5" if is_v3 else "given.h5")
        named.symlink_to(path.absolute())
        model.load_weights(str(named))


def _by_name(variables: Any) -> dict[str, Any]:
    """Returns variables by name; a second one of a name gets a number."""
    found: dict[str, Any] = {}
    for variable in variables:
        base = name = variable.name.partition(":")[0]
        number = 1
        while name in found:
            number += 1
            name = f"{base} ({number})"
        found[name] = variable
    return found


def _shapes(variables: Mapping[str, Any]) -> Shapes:
    return {name: list(variable.shape) for name, variable in variables.items()}


def _shapes_in(path: Path) -> Shapes:
    found: dict[str, list[int]] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = list(item.shape)

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def _check_same(model: Shapes, base: Shapes, path: Path) -> None:
    """Raises NodeError with each weight that is not in both, or has another shape."""
    differing = [
        f"{name}: {model.get(name, 'missing')} in the model, "
        f"{base.get(name, 'missing')} in the one to start from"
        for name in dict.fromkeys((*model, *base))
        if model.get(name) != base.get(name)
    ]
    if differing:
        raise NodeError(
            "the model to start from has another architecture",
            where=path,
            expected=f"the {len(model)} weights of the model",
            actual=f"{len(base)} weights; {len(differing)} differ or are missing",
            examples=differing,
            hint="undo the change of the model, or set train.warm_start to null to "
            "train it from random weights",
        )
