"""Config section ``tune``: the search for values of ``train`` and ``model_params``."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AllowInfNan,
    Discriminator,
    StrictFloat,
    StrictInt,
    Tag,
    model_validator,
)
from ruamel.yaml import YAML

from pipeline.config.problems import KeyPath
from pipeline.config.train import Train, Watching
from sluice.config_section import (
    Count,
    Flag,
    JsonValue,
    NotEmpty,
    Section,
    Text,
    expect,
    refuse,
    shorthand,
)
from sluice.metrics import direction_of
from sluice.storage import atomic

# Keys that say what the keys beside them mean.
SELECTORS = ("kind", "class")
# The process with its devices, the graph and the code in its cache key are the same for
# all trials.
_ONE_FOR_ALL = """
strategy replicas processes parameter_servers devices deterministic callbacks metrics
sample_weight warm_start
""".split()


class Range(Section):
    """All numbers between two, whole ones if both are."""

    min: Annotated[StrictInt | StrictFloat, AllowInfNan(False)]
    """The smallest."""
    max: Annotated[StrictInt | StrictFloat, AllowInfNan(False)]
    """The largest."""
    log: Flag = False
    """Whether each power of ten is drawn as often as the others."""

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers."""
        return isinstance(self.min, int) and isinstance(self.max, int)

    @model_validator(mode="after")
    def _fits_together(self) -> Range:
        if self.min >= self.max:
            refuse("the largest value is not above the smallest", "max")
        if self.log and self.min <= 0:
            refuse("a logarithmic range begins above 0", "log")
        return self


def _key(key: str) -> str:
    section, _, below = key.partition(".")
    if section not in ("train", "model_params") or not below:
        expect("a key of train or model_params, such as train.learning_rate")
    if section == "train" and below.partition(".")[0] in _ONE_FOR_ALL:
        refuse(f"all trials have the same {key}")
    return key


_Values = Annotated[
    Annotated[Range, Tag("range")]
    | Annotated[NotEmpty[tuple[JsonValue, ...]], Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "range"),
]


class Tune(Section):
    """A search for the best values of some keys, before the training."""

    algorithm: Literal["random", "bayesian", "hyperband"] = "random"
    """How values are chosen, by KerasTuner. hyperband: many trials train for a few
    epochs, and the best of them go on."""
    trials: Count | None = None
    """Maximum number of trials. null: 20, of hyperband as many as it needs."""
    objective: Annotated[Watching, shorthand("metric", Watching)] = (
        Watching.model_construct()
    )
    """What is compared, each trial by its best epoch."""
    epochs: Count | None = None
    """Epochs of a trial, at most. null: `train.epochs`."""
    space: NotEmpty[dict[Annotated[Text, AfterValidator(_key)], _Values]]
    """By key below `train` or `model_params`, such as `train.learning_rate`, the values
    to choose from: a list, or a range."""

    @property
    def direction(self) -> Literal["min", "max"]:
        """Whether less or more of the objective is better."""
        mode, metric = self.objective.mode, self.objective.metric
        return direction_of(metric) or "min" if mode == "auto" else mode

    @model_validator(mode="after")
    def _epochs_are_given_once(self) -> Tune:
        if "train.epochs" in self.space and (
            self.epochs or self.algorithm == "hyperband"
        ):
            what = "epochs cannot be tuned by hyperband, or beside tune.epochs"
            refuse(what, "space", "train.epochs")
        return self

    @model_validator(mode="after")
    def _losses_are_not_compared(self) -> Tune:
        is_tuned = any(key.split(".")[:2] == ["train", "loss"] for key in self.space)
        if is_tuned and self.objective.metric in ("loss", "val_loss"):
            what = "values of different losses say nothing: compare by a metric, such "
            refuse(f"{what}as val_auc", "objective")
        return self


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
