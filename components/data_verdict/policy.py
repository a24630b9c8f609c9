"""Data gate policy per kind of anomaly, the config's ``validate``; the node's settings.

The policy decides whether an anomaly fails, warns or is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from pydantic import model_validator

from components.data_verdict.anomaly_kind import KINDS, OF_NO_FEATURE, remedy
from components.tfrecord_gen.hash_splits import HashSplits
from sluice.config_section import (
    Count,
    Fraction,
    PositiveNumber,
    Section,
    Text,
    refuse,
)
from sluice.errors import did_you_mean
from sluice.record.verdict import Check

Action = Literal["fail", "warn", "ignore"]
SplitName = Literal["train", "eval", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)


class Rule(Section):
    """Action for some anomalies; of several matching rules the last applies."""

    feature: Text | None = None
    """The feature. null: every feature."""
    anomaly: Text | None = None
    """The kind of anomaly, such as `new_value`. null: every kind."""
    action: Action
    """`fail` stops the run, `warn` is shown, `ignore` is only counted."""

    @model_validator(mode="after")
    def _can_apply(self) -> Rule:
        if self.anomaly not in (None, *KINDS):
            close = did_you_mean(self.anomaly, KINDS) or f"one of {', '.join(KINDS)}"
            refuse(f"there is no anomaly {self.anomaly!r}: {close}", "anomaly")
        if self.feature is not None and self.anomaly in OF_NO_FEATURE:
            refuse(f"anomalies of the kind {self.anomaly!r} have no feature", "feature")
        return self


class DataPolicy(Section):
    """What the data gate accepts."""

    default: Action = "fail"
    """For anomalies without a matching rule: `fail` stops the run, `warn` is shown,
    `ignore` is only counted."""
    rules: tuple[Rule, ...] = ()
    """Exceptions to `default`."""
    min_examples: dict[SplitName, Count] = {}
    """Minimum number of examples by split; default: 1."""
    max_examples: dict[SplitName, Count] = {}
    """Maximum number of examples by split."""
    max_count_change: PositiveNumber | None = None
    """How much larger or smaller a split may be than in the data accepted last: 0.5
    allows half as many and half as many again."""

    @model_validator(mode="after")
    def _has_range(self) -> DataPolicy:
        for split, most in self.max_examples.items():
            if most < self.min_examples.get(split, 0):
                refuse("max_examples is less than min_examples", "max_examples", split)
        return self


class Policy(DataPolicy):
    """The config's ``validate``, with the limit on damaged records of ``examples``."""

    max_corrupt_fraction: Fraction = 0.0
    """Of records, bytes or files."""

    def ruling(self, kind: str, feature: str | None = None) -> tuple[Action, str]:
        """Returns the action for an anomaly, and the line of the config that sets it.

        Args:
          kind: one of ``anomaly_kind.KINDS``.
          feature: its name; None for an anomaly of no feature, to which rules that name
            a feature do not apply.
        """
        for index, rule in reversed([*enumerate(self.rules)]):
            if rule.feature in (None, feature) and rule.anomaly in (None, kind):
                return rule.action, f"validate.rules[{index}]: {rule.action}"
        if kind == "corrupt" and self.default == "fail":
            limit = f"examples.max_corrupt_fraction: {self.max_corrupt_fraction:g}"
            return "fail", limit
        return self.default, f"validate.default: {self.default}"

    def apply(self, row: Check) -> Check:
        """Returns the row of an anomaly with the policy's decision; others as is."""
        if row.kind is None:
            return row
        action, line = self.ruling(row.kind, row.feature)
        text, command = remedy(row.kind)
        return replace(
            row,
            passed=action != "fail",
            severity=action,
            policy=line,
            remedy=text,
            command=command,
        )


class Settings(Section):
    """Settings of the ``DataVerdict`` node."""

    splits: tuple[Text, ...]
    """The splits that the pipeline declares, in order."""
    policy: Policy
    sensitive: tuple[Text, ...] = ()
    """Features whose values are never shown."""
    hash_splits: HashSplits | None = None
    """How records are divided into splits; null if files are."""
