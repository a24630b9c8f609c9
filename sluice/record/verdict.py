"""Verdict of a gate: checks with limit, actual value and reason.

Every gate (data, model, serving) has this form, so that the terminal, ``--json``, the
run record and the report show all of them alike.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from sluice.storage.storage import storage_for

VERDICT_FILE = "verdict.json"


@dataclass(frozen=True)
class Check:
    """One row of a verdict.

    Attributes:
      check: what was checked, such as ``auc`` or ``feature 'fare'``.
      slice: the slice or split, ``overall`` for all of it.
      limit: a number to compare with, or in words, such as ``in all examples``.
      baseline: the baseline's value; None where there is none.
      actual: what was seen.
      passed: false for what stops the run; true where the check holds, and where a
        policy lets a miss pass.
      why: one sentence that explains the outcome.
      severity: what the policy does about a miss; None where the check holds, and for
        gates without a policy.
      policy: the line of the config that says so, such as ``validate.rules[2]: warn``.
      kind: what is missed, such as ``new_value``; see
        ``components.data_verdict.policy``.
      feature: the feature that it is about.
      examples: where it was seen, such as a file and a record's number; at most five.
      comparison: ``>=`` or ``<=``, of a number as limit; None for a limit in words.
      measure: what is compared with it: the ``absolute`` or ``relative`` change from
        the baseline, or the kind of distance that ``actual`` is; else None.
      remedy: what a person can do about a miss.
      command: the verb of ``sluice`` that shows or repairs it, such as ``schema diff``;
        the pipeline's name follows it.
      answer: of a reason, whether there is one; else None.
    """

    check: str
    slice: str
    limit: float | str | None
    baseline: float | str | None
    actual: float | str | None
    passed: bool
    why: str = ""
    severity: Literal["fail", "warn", "ignore"] | None = None
    policy: str | None = None
    kind: str | None = None
    feature: str | None = None
    examples: tuple[str, ...] = ()
    comparison: str | None = None
    measure: str | None = None
    remedy: str | None = None
    command: str | None = None
    answer: bool | None = None

    @property
    def limit_text(self) -> str | None:
        """The limit as a reader would write it, such as ``absolute >= -0.01``."""
        if self.comparison is None:
            return None if self.limit is None else str(self.limit)
        text = f"{self.comparison} {self.limit:g}"
        return f"{self.measure} {text}" if self.measure else text

    @property
    def compared(self) -> float | None:
        """The number that is compared with the limit: ``actual``, or its change."""
        if self.comparison is None or not isinstance(self.actual, int | float):
            return None
        if self.measure not in ("absolute", "relative"):
            return self.actual
        if not isinstance(self.baseline, int | float):
            return None
        change = self.actual - self.baseline
        if self.measure == "absolute" or not change:
            return change
        # A baseline of zero has no relative change, except for no change at all.
        infinite = math.copysign(math.inf, change)
        return change / abs(self.baseline) if self.baseline else infinite

    @property
    def margin(self) -> float | None:
        """How far the number is within its limit; negative if it misses it."""
        number, limit = self.compared, self.limit
        if number is None or isinstance(limit, str | None):
            return None
        return number - limit if self.comparison == ">=" else limit - number

    @property
    def sentence(self) -> str:
        """What was missed and where first, as the top of a page has it."""
        if self.severity is not None:
            return self._anomaly
        name = self.check.removesuffix(" change")
        name += "" if self.slice == "overall" else f" of {self.slice}"
        if self.margin is None:
            return f"{name}: {self.why}"
        text = f"{name} is {cell(self.actual)}"
        if isinstance(self.baseline, float):
            text += f" (baseline {cell(self.baseline)})"
        if self.measure:
            limit = f"limit {self.comparison} {self.limit:g}"
            return f"{text}: {self.measure} change {self.compared:+.4f}, {limit}"
        side = "below" if self.comparison == ">=" else "above"
        return f"{text}, {cell(abs(self.margin))} {side} the limit {self.limit:g}"

    @property
    def _anomaly(self) -> str:
        """The reason, which says all but the feature, and a place in the data."""
        why = self.why.rstrip(" .")
        if self.feature:
            why = f"{self.check} in {self.slice}: {why[:1].lower()}{why[1:]}"
        for example in self.examples[:1]:
            file = file_of(example)
            name = os.path.basename(file)
            if name not in why:
                place = ": ".join((name + example.removeprefix(file)).split(": ")[:2])
                why += f"; {'first ' if self.examples[1:] else ''}at {place}"
        return why

    @property
    def result(self) -> str:
        """``pass``, ``FAIL``, ``warn`` or ``ignored``; ``yes``, ``no`` of a reason."""
        if self.answer is not None:
            return "yes" if self.answer else "no"
        if not self.passed:
            return "FAIL"
        return {"warn": "warn", "ignore": "ignored"}.get(self.severity or "", "pass")


@dataclass(frozen=True)
class Verdict:
    """What a gate decided. It passes only if every row does.

    Attributes:
      gate: ``data``, ``retrain``, ``model`` or ``serving``.
      rows: the checks, in the order in which a reader should see them.
      override: the reason given by a person who let it pass, None normally.
    """

    gate: str
    rows: tuple[Check, ...]
    override: str | None = None

    @property
    def passed(self) -> bool:
        return self.override is not None or not self.failures

    @property
    def skips(self) -> bool:
        """Whether none of its rows is a reason to train."""
        answers = [row.answer for row in self.rows if row.answer is not None]
        return bool(answers) and not any(answers)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(row for row in self.rows if not row.passed)

    @property
    def causes(self) -> list[str]:
        """A sentence for each cause of the failures.

        There is one for a metric on a slice, however many limits it misses; for a
        feature, however many splits; and for all that is wrong with the same files.
        """
        found: dict[tuple[str | None, ...], Check] = {}
        files: set[str] = set()
        for row in self.failures:
            named = set() if row.feature else {file_of(x) for x in row.examples}
            if named and named <= files:
                continue
            files |= named
            key = row.kind, row.feature
            if not row.feature:
                key = row.check.removesuffix(" change"), row.slice
            first = found.setdefault(key, row)
            if row.feature and first is not row:
                found[key] = replace(first, slice=f"{first.slice}, {row.slice}")
        return [row.sentence for row in found.values()]

    @property
    def remedies(self) -> list[tuple[str, str | None]]:
        """What repairs the failures, each with the verb of ``sluice`` that helps."""
        found = {row.remedy: row.command for row in self.failures if row.remedy}
        return [*found.items()]

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(row for row in self.rows if row.result == "warn")

    def to_dict(self) -> dict:
        """Returns the form that ``--json`` and the run record hold."""
        return {
            "gate": self.gate,
            "passed": self.passed,
            "override": self.override,
            "rows": [
                {**asdict(row), "examples": list(row.examples)} for row in self.rows
            ],
        }

    @classmethod
    def from_dict(cls, data: dict) -> Verdict:
        """Reads what ``to_dict`` wrote; ``passed`` is derived again."""
        rows = (
            Check(**{**row, "examples": tuple(row.get("examples", ()))})
            for row in data["rows"]
        )
        return cls(gate=data["gate"], rows=tuple(rows), override=data["override"])

    @classmethod
    def load(cls, directory: str | Path) -> Verdict:
        """Reads ``verdict.json`` from an artifact's directory, local or an address.

        Raises:
          OSError: it is not there.
        """
        content = storage_for(directory).read(os.path.join(directory, VERDICT_FILE))
        return cls.from_dict(json.loads(content))


def file_of(example: str) -> str:
    """Returns the file of an example: ``FILE, record 3: ...`` or ``FILE: ...``."""
    return re.split("[,:] ", example, maxsplit=1)[0]


def cell(value: float | str | None) -> str:
    """Returns a limit or value as a table shows it: four decimals, ``-`` for none.

    A number that these would show as 0 keeps two digits: 1 record of 60,000 is not 0.
    """
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2g}" if 0 < abs(value) < 0.0001 else f"{value:.4f}"
