"""Values of tuned keys: in a config and its file, and those that a search may try."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline.config.problems import KeyPath
from pipeline.config.train import Train
from pipeline.config.tune import SELECTORS, Range, Tune
from sluice.storage import atomic


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
    data: Any = deepcopy(given)
    _set_values(data, values)
    return Train.model_validate(data["train"]), data["model_params"]


def write_values(file: Path, values: Mapping[str, Any]) -> None:
    """Writes values by key path into a config file, which keeps its comments.

    A comment that follows the keys of a mapping goes with them if it is replaced.

    Raises:
      OSError: the file cannot be read or written.
    """
    yaml, text = YAML(), io.StringIO()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    data = yaml.load(file.read_text(encoding="utf-8-sig"))
    _set_values(data, values)
    yaml.dump(data, text)
    atomic.write_text(file, text.getvalue())


def _set_values(data: MutableMapping[str, Any], values: Mapping[str, Any]) -> None:
    for key in sorted(values, key=lambda key: key.rpartition(".")[2] not in SELECTORS):
        *parents, last = key.split(".")
        section = data
        for parent in parents:
            known = section.get(parent)
            if not isinstance(known, dict):
                # The short form of `{class: SGD}`.
                section[parent] = {"class": known} if isinstance(known, str) else {}
            section = section[parent]
        others = {} if last in SELECTORS else {**section}
        if last not in others:
            # In front of the others: a comment behind the last belongs to what follows.
            section.clear()
            section[last] = None
            section.update(others)
        section[last] = values[key]


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
