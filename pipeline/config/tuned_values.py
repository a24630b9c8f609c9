"""Values of tuned keys: in a config, and those that a search may try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from pipeline.config.layer import Layer
from pipeline.config.problems import KeyPath
from pipeline.config.train import Train
from pipeline.config.tune import Range, Tune


def with_values(
    train: Train, model_params: Mapping[str, Any], values: Mapping[str, Any]
) -> tuple[Train, dict[str, Any]]:
    """Returns ``train`` and ``model_params`` with other values, by key path.

    What the keys were before makes no difference. A ``class`` or ``kind`` therefore
    begins without the keys that stood beside it.

    Raises:
      ValidationError: a value does not fit.
    """
    given = {"train": train.model_dump(by_alias=True), "model_params": model_params}
    base, top = Layer(deepcopy(given), {}), Layer({}, {})
    for key, value in values.items():
        *parents, last = key.split(".")
        old, new = base.data, top.data
        for parent in parents:
            below = old.get(parent)
            old = below if isinstance(below, dict) else {}
            new = new.setdefault(parent, {})
        old.pop(last, None)
        new[last] = value
    base.overlay(top)
    return Train.model_validate(base.data["train"]), base.data["model_params"]


def candidates(tune: Tune) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yields the choices of each key, and the ends of its range, with their place."""
    if tune.epochs:
        yield ("tune", "epochs"), {"train.epochs": tune.epochs}
    for key, given in tune.space.items():
        ends = {"min": given.min, "max": given.max} if isinstance(given, Range) else {}
        for place, value in ends.items() or enumerate(given):
            yield ("tune", "space", key, place), {key: value}


def first_values(tune: Tune) -> dict[str, Any]:
    """Returns a value of each key, whatever the config has there."""
    return {
        key: given.min if isinstance(given, Range) else given[0]
        for key, given in tune.space.items()
    }
