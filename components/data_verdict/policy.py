"""Data gate policy per kind of anomaly: the config's ``validate``.

A policy answers two things: what to do about an anomaly, and which line of the config
said so. It knows nothing of how anomalies are found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from sluice.config_section import Count, Number, PositiveNumber, Section, Text

Action = Literal["fail", "warn", "ignore"]
SplitName = Literal["train", "eval", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

_ACTION = "`fail` stops the run, `warn` is shown, `ignore` is only counted."


class Rule(Section):
    """What is done about anomalies; of several rules the last to match counts."""

    feature: Text | None = Field(
        default=None, description="The feature. null: every feature."
    )
    anomaly: Text | None = Field(
        default=None,
        description="The kind of anomaly, such as `new_value`. null: every kind.",
    )
    action: Action = Field(description=_ACTION)


class DataPolicy(Section):
    """What the data gate accepts."""

    default: Action = Field(
        default="fail", description=f"For anomalies without a matching rule: {_ACTION}"
    )
    rules: tuple[Rule, ...] = Field(default=(), description="Exceptions to `default`.")
    min_examples: dict[SplitName, Count] = Field(
        default={}, description="Minimum number of examples by split; default: 1."
    )
    max_examples: dict[SplitName, Count] = Field(
        default={}, description="Maximum number of examples by split."
    )
    max_count_change: PositiveNumber | None = Field(
        default=None,
        description="How much larger or smaller a split may be than in the data "
        "accepted last: 0.5 allows half as many and half as many again.",
    )


@dataclass(frozen=True)
class Ruling:
    """What is done about an anomaly, and the line of the config that says so."""

    action: Action
    line: str


class Policy(DataPolicy):
    """The config's ``validate``, with the limit on damaged records of ``examples``."""

    # Of records, bytes or files.
    max_corrupt_fraction: Annotated[Number, Field(ge=0, le=1)] = Field(default=0.0)

    def ruling(self, kind: str, feature: str | None = None) -> Ruling:
        """Returns what is done about an anomaly.

        Args:
          kind: one of ``anomaly_kind.KINDS``.
          feature: the feature's name, None for what is about no feature. A rule that
            names a feature never applies then.
        """
        for index in range(len(self.rules) - 1, -1, -1):
            rule = self.rules[index]
            if rule.feature in (None, feature) and rule.anomaly in (None, kind):
                return Ruling(rule.action, f"validate.rules[{index}]: {rule.action}")
        if kind == "corrupt" and self.default == "fail":
            limit = f"examples.max_corrupt_fraction: {self.max_corrupt_fraction:g}"
            return Ruling("fail", limit)
        return Ruling(self.default, f"validate.default: {self.default}")

    def count_range(self, split: str) -> tuple[int, int | None]:
        """Returns the fewest and the most examples of a split; None for no limit."""
        least: Mapping[Any, int] = self.min_examples
        most: Mapping[Any, int] = self.max_examples
        return least.get(split, 1), most.get(split)

    def to_json(self) -> str:
        """Returns the form in which a node takes it: sorted keys, always the same."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Reads what ``to_json`` wrote."""
        return cls.model_validate_json(text)
