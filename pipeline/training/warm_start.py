"""Warm start: initial weights from a model that was trained before.

The other model must have the same layers and features. Weights of categories and
classes are moved to the places that these have in the new model; those of new ones stay
initial. The state of the optimizer is not taken over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.features import SAMPLE_WEIGHT_KEY, FeatureSet
from pipeline.training.export import FEATURES_FILE
from pipeline.training.keras_of import by_name
from pipeline.training.match_weights import Axis, UnknownLayer, weight_axes
from pipeline.training.models import ModelInputs
from pipeline.training.models.published_weights import (
    load_weights,
    refresh_normalization,
)
from pipeline.training.preprocessing import Places, feature_places
from sluice import progress
from sluice.errors import NodeError, bounded
from sluice.model_facts import CLASSES_FILE
from sluice.storage.local_copy import local_copy

_INITIAL = "set train.warm_start to null to train it from initial weights"


def warm_start(
    model: Any,
    source: str,
    base_model: str | None,
    inputs: ModelInputs,
    vocabularies: Mapping[str, Sequence[bytes]],
) -> None:
    """Sets the weights of a model to those of another, and reports it.

    The weights stay as they are if no model was found for ``train.warm_start``, the
    ``source``; else ``base_model`` is the path or address of a SavedModel of ours, or
    of a file that Keras' ``save_weights`` has written (``.h5``). ``vocabularies`` are
    the new model's, see ``read_vocabularies``.

    Raises:
      NodeError: it cannot be read, or has other layers or features; or categories have
        other ids, and nothing says which weights are theirs.
    """
    if base_model is None:
        line = f"warm start: there is no model for '{source}' yet, weights are initial"
        progress.note(line, event="warm_start", source=source)
        return
    changes: list[str] = []
    try:
        with local_copy(base_model) as path:
            if path.suffix == ".h5":
                load_weights(model, path)
                if vocabularies:
                    changes = ["it has no vocabularies, so ids are taken as they are"]
            else:
                changes = _load_saved_model(model, path, inputs, vocabularies)
    except (OSError, AttributeError, tf.errors.OpError) as error:
        reason = str(error).partition("\n")[0]
        raise NodeError(
            f"train.warm_start needs a SavedModel that Sluice has trained, or a .h5 "
            f"file of weights: {reason}",
            where=base_model,
        ) from error
    refresh_normalization(model)
    line = f"warm start: weights of {source}, {base_model}"
    line = "; ".join([line, *bounded(changes)])
    progress.note(line, event="warm_start", source=source, base_model=base_model)


def read_vocabularies(saved_model: str) -> dict[str, list[bytes]]:
    """Returns the values of each vocabulary of a SavedModel by rank, by file name."""
    files = tf.io.gfile.glob(os.path.join(saved_model, "assets", "*"))
    return {
        os.path.basename(file): tf.io.read_file(file).numpy().splitlines()
        for file in files
    }


def _load_saved_model(
    model: Any,
    path: Path,
    inputs: ModelInputs,
    vocabularies: Mapping[str, Sequence[bytes]],
) -> list[str]:
    """Sets the weights, and returns what is not as it was, one line each."""
    loaded = tf.saved_model.load(str(path))
    base_classes = json.loads((path / CLASSES_FILE).read_bytes())["classes"]
    features = inputs.feature_set
    base_features = FeatureSet.model_validate_json((path / FEATURES_FILE).read_bytes())
    transformed = loaded.signatures["transform_features"].structured_outputs
    names = {*transformed} - {base_features.label.key, SAMPLE_WEIGHT_KEY}
    differing = sorted(names ^ {*inputs.shapes}) or [
        f"{name}, where there is {now} now"
        for name, now in zip(base_features.features, features.features, strict=False)
        if name != now
    ]
    if differing:
        raise NodeError(
            "the model to start from has other features, or the same in another order",
            where=path,
            examples=differing,
            hint=f"undo the change of the features, or {_INITIAL}",
        )
    base_places = feature_places(base_features, read_vocabularies(str(path)))
    places = feature_places(features, vocabularies)
    axes = {name: Axis(base_places.get(name, ()), places[name]) for name in places}
    classes = base_classes, features.label.class_names
    outputs = Axis(*(_places_of_outputs(names, inputs.units) for names in classes))
    base = getattr(loaded, "weights_by_name", None)
    if base is None:  # Of an older version.
        base = by_name(loaded.variables_of_model)
    moved = _set_weights(model, base, axes, outputs, path)
    changes = [_counts(axis) for axis in (*axes.values(), outputs)]
    kept = [
        name
        for name, spec in features.features.items()
        if name not in moved
        and (spec.kind == "bucketized" or spec != base_features.features.get(name))
    ]
    if kept:
        line = f"kept, though bounds or settings may have changed: {', '.join(kept)}"
        changes.append(line)
    return list(filter(None, changes))


def _places_of_outputs(classes: Sequence[str], units: int) -> Places:
    """Returns what each output stands for: a class, one of two classes, or a number."""
    if classes and units > 1:
        return tuple(("classes", name) for name in classes)
    return tuple(("classes", i, *classes) for i in range(units))


def _counts(axis: Axis) -> str:
    """Returns how many values are new, and how many are gone; "" if there are none."""
    base, new = ({place for place in side if place[1] is not None} for side in axis)
    if base == new:
        return ""
    return f"{axis.name}: {len(new - base)} new, {len(base - new)} gone"


def _set_weights(
    model: Any,
    base: Mapping[str, Any],
    axes: Mapping[str, Axis],
    outputs: Axis,
    path: Path,
) -> list[str]:
    """Sets the weights to those of the base, each at the place it belongs to now.

    Returns the names of the axes that differ.
    """
    own = by_name(model.weights)
    of_weight: dict[int, tuple[Axis, ...]] = {}
    every = (*axes.values(), outputs)
    if differing := [axis.name for axis in every if axis.base != axis.new]:
        try:
            of_weight = weight_axes(model, axes, outputs, base)
        except UnknownLayer as error:
            raise NodeError(
                "categories have other places than in the model to start from, and "
                f"nothing says which weights are theirs: {error}",
                where=path,
                examples=differing,
                hint=_INITIAL,
            ) from error
    # Not by position: the order depends on which layers are frozen.
    axes_of = {name: of_weight.get(id(weight), ()) for name, weight in own.items()}
    needed = {(name, _base_shape(own[name], axes_of[name])) for name in own}
    there = {(name, str(list(weight.shape))) for name, weight in base.items()}
    if needed != there:
        raise NodeError(
            "the model to start from has another architecture",
            where=path,
            expected="the same weights; these are in one of the models only",
            examples=[f"{name} {shape}" for name, shape in sorted(needed ^ there)],
            hint=f"undo the change of the model, or {_INITIAL}",
        )
    for name, weight in own.items():
        weight.assign(_moved(base[name], weight, axes_of[name]))
    return differing


def _base_shape(weight: Any, axes: Sequence[Axis]) -> str:
    """Returns the shape that a weight must have in the model to start from."""
    rest = weight.shape[: len(weight.shape) - len(axes)]
    return str([*rest, *(len(axis.base) for axis in axes)])


def _moved(base: Any, weight: Any, axes: Sequence[Axis]) -> np.ndarray:
    """Returns a weight with the numbers of the base at the places they belong to now.

    Others stay initial; but those of a known row in a new column are 0, so that a new
    class or a wider embedding does not change what was learned.
    """
    if not axes:
        return base.numpy()
    moved = weight.numpy()
    rest = [(range(size),) * 2 for size in weight.shape[: -len(axes)]]
    from_places, to_places = zip(*rest, *(axis.kept() for axis in axes), strict=True)
    if len(axes) > 1:
        moved[np.ix_(*to_places[:-1])] = 0
    moved[np.ix_(*to_places)] = base.numpy()[np.ix_(*from_places)]
    return moved
