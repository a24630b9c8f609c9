"""Kinds of data anomalies, and the policy per kind, which the config's ``validate`` is.

The policy decides whether an anomaly fails, warns or is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, model_validator

from components.tfrecord_gen.settings import HashSplits
from sluice.config_section import (
    Count,
    Fraction,
    PositiveNumber,
    Section,
    Text,
    refuse,
)
from sluice.errors import did_you_mean
from sluice.record.verdict import RESULTS, Check

KINDS = {
    "new_value": "a value that the feature's domain does not list",
    "out_of_range": "a number outside the bounds of the feature's domain",
    "not_finite": "NaN or an infinity",
    "invalid_text": "bytes that are not UTF-8, in a feature of text",
    "missing": "a feature in fewer examples than the schema asks for, or in none",
    "new_feature": "a feature that the schema does not know",
    "wrong_type": "values of another type than the schema's",
    "wrong_shape": "more or fewer values in an example than the schema says",
    "not_unique": "more or fewer different values than the schema says",
    "drift": "values distributed otherwise than in the data that was accepted last",
    "split_drift": "values distributed otherwise in train than in eval",
    "skew": "values distributed otherwise than in what clients have sent",
    "not_compared": "a comparator or a limit of the schema that cannot be measured",
    "count": "more or fewer examples in a split than the config allows",
    "count_change": "a number of examples far from that of the data accepted last",
    "corrupt": "more damaged records than the config allows",
    "duplicate_shard": "the same file content more than once",
    "missing_shard": "a file that its set's numbering announces, but is not there",
    "manifest": "files that are not what their manifest says",
    "expectation": "records for which a condition of validate.expect is false",
    "leak": "records of eval or test that are in train as well",
    "other": "an anomaly of TFDV that has no name here",
}
_OF_FILES = ("duplicate_shard", "missing_shard", "manifest")
OF_NO_FEATURE = (
    *("count", "count_change", "corrupt", "expectation", "leak"),
    *_OF_FILES,
)
COMPARISON_NAMES = {
    "drift": "drift since the data accepted last",
    "split_drift": "train against eval",
    "skew": "training-serving skew",
}
# Where the schema may be wrong instead of the data.
SCHEMA_KINDS = (
    "new_value",
    "out_of_range",
    "missing",
    "new_feature",
    "wrong_type",
    "wrong_shape",
    "invalid_text",
)

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


class Expectation(Section):
    """A mapping allows a fraction of the records to be otherwise."""

    rule: Text
    """A condition on the features of a record in DuckDB's SQL."""
    max_fraction: Fraction = 0.0
    """Maximum fraction of the records of a split for which the rule is false."""


def _expectation(value: Any) -> Any:
    return {"rule": value} if isinstance(value, str) else value


class DataPolicy(Section):
    """What the data gate accepts."""

    default: Action = "fail"
    """For anomalies without a matching rule: `fail` stops the run, `warn` is shown,
    `ignore` is only counted. A `leak` without a rule is at most a `warn`: the rows of a
    table of few columns may be equal by chance."""
    rules: tuple[Rule, ...] = ()
    """Exceptions to `default`."""
    min_examples: dict[SplitName, Count] = {}
    """Minimum number of examples by split; default: 1."""
    max_examples: dict[SplitName, Count] = {}
    """Maximum number of examples by split."""
    max_count_change: PositiveNumber | None = None
    """How much larger or smaller a split may be than in the data accepted last: 0.5
    allows half as many and half as many again."""

    expect: tuple[
        Annotated[
            Expectation,
            BeforeValidator(_expectation, json_schema_input_type=str | Expectation),
        ],
        ...,
    ] = ()
    """Conditions on several features of a record, such as
    `dropoff_time >= pickup_time`, judged in each split. One that needs a missing value
    is neither true nor false, and is counted."""

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
          kind: one of ``KINDS``.
          feature: its name; None for an anomaly of no feature, to which rules that name
            a feature do not apply.
        """
        for index, rule in reversed([*enumerate(self.rules)]):
            if rule.feature in (None, feature) and rule.anomaly in (None, kind):
                return rule.action, f"validate.rules[{index}]: {rule.action}"
        if kind == "corrupt" and self.default == "fail":
            limit = f"examples.max_corrupt_fraction: {self.max_corrupt_fraction:g}"
            return "fail", limit
        if kind == "leak" and self.default == "fail":
            return "warn", "without a rule for leak: warn"
        return self.default, f"validate.default: {self.default}"

    def apply(self, row: Check) -> Check:
        """Returns the row of an anomaly with the policy's decision; others as is."""
        if row.kind is None:
            return row
        action, line = self.ruling(row.kind, row.feature)
        text, command = remedy(row.kind)
        return replace(
            row,
            result=RESULTS[action],
            policy=line,
            remedy=row.remedy or text,
            command=None if row.remedy else command,
        )


def anomaly(kind: str, split: str, check: str, why: str, **fields: Any) -> Check:
    """Returns the row of an anomaly, to which the policy is not applied yet.

    Args:
      kind: one of ``KINDS``.
      split: the split, ``serving``, or ``overall``.
      check: what was checked.
      why: one sentence, without values of sensitive features.
      **fields: further fields of the row.
    """
    return Check(check=check, slice=split, result="FAIL", why=why, kind=kind, **fields)


def remedy(kind: str) -> tuple[str, str | None]:
    """Returns what a person can do about a kind, and the verb that helps."""
    if kind == "corrupt":
        return "write or copy the damaged files again", None
    if kind in _OF_FILES:
        return "make the files and their manifest agree", None
    if kind in SCHEMA_KINDS:
        text = "correct the data; or, if the data is right, the schema"
        return text, "schema diff"
    if kind == "leak":
        rule = "{anomaly: leak, action: fail}"
        text = "take the records out of one of the splits; to stop such runs: "
        return f"{text}validate.rules: [{rule}]", None
    if kind == "not_finite":
        rule = "{anomaly: not_finite, action: warn}"
        return (
            f"correct the data; or let them count as missing: validate.rules: [{rule}]",
            None,
        )
    if kind in COMPARISON_NAMES:
        text = "correct the data, or raise the limit of the comparator in the schema"
        return text, None
    return "correct the data, or the limits in the config's section validate", None


class Settings(Section):
    """Settings of the ``DataVerdict`` node."""

    splits: tuple[Text, ...]
    """The splits that the pipeline declares, in order."""
    policy: Policy
    sensitive: tuple[Text, ...] = ()
    """Features whose values are never shown."""
    hash_splits: HashSplits | None = None
    """How records are divided into splits; null if files are."""
    sliced: tuple[Text, ...] = ()
    """Features whose values are slices of the evaluation."""
    min_requests: int = 1
    """Minimum number of serving requests, if the pipeline has any."""
