"""Data gate policy per kind of anomaly: the config's ``validate``.

For each anomaly it returns the action, and the line of the config that sets it.
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
    """Action for some anomalies; of several matching rules the last applies."""

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
    """Action for an anomaly, and the line of the config that sets it."""

    action: Action
    line: str


class Policy(DataPolicy):
    """The config's ``validate``, with the limit on damaged records of ``examples``."""

    # Of records, bytes or files.
    max_corrupt_fraction: Annotated[Number, Field(ge=0, le=1)] = Field(default=0.0)

    def ruling(self, kind: str, feature: str | None = None) -> Ruling:
        """Returns the action for an anomaly.

        Args:
          kind: one of ``anomaly_kind.KINDS``.
          feature: its name; None for an anomaly of no feature, to which rules that name
            a feature do not apply.
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
        """Returns the limits of a split's number of examples; None for no maximum."""
        least: Mapping[Any, int] = self.min_examples
        most: Mapping[Any, int] = self.max_examples
        return least.get(split, 1), most.get(split)

    def to_json(self) -> str:
        """Returns the exec property: JSON with sorted keys."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Reads what ``to_json`` wrote."""
        return cls.model_validate_json(text)
