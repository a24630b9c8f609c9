"""Verdict of a gate: checks with limit, actual value and reason.

Every gate (data, retrain, model, export, serving) has this form, so that the terminal,
``--json``, the run record and the report show all of them alike.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass

from sluice.numbers import number_text, signed_text
from sluice.storage.storage import storage_for

VERDICT_FILE = "verdict.json"
# The gates as a reader should see them; two may decide at the same time.
ORDER = ("data", "retrain", "model", "export", "serving")
# The limit of a metric that must be better than a constant prediction's.
BETTER_THAN_REFERENCE = "better than reference"
Comparator = Literal[">=", "<="]
# Whether a check holds, or what the data policy does about an anomaly; ``yes`` and
# ``no`` say whether there is a reason to train.
Result = Literal["FAIL", "warn", "ignored", "pass", "yes", "no"]
# The result of an anomaly by the action of the policy.
RESULTS: dict[str, Result] = {"fail": "FAIL", "warn": "warn", "ignore": "ignored"}
_ACTIONS = {result: action for action, result in RESULTS.items()}
_ANSWERS = {"yes": True, "no": False}


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Check:
    """One row of a verdict.

    Attributes:
      check: what was checked, such as ``auc`` or ``feature 'fare'``.
      slice: the slice or split, ``overall`` for all of it.
      limit: a number to compare with, or in words, such as ``in all examples``.
      comparison: ``>=`` or ``<=``, of a number as limit; None for a limit in words.
      measure: what is compared with it: the ``absolute`` or ``relative`` change from
        the baseline, or the kind of distance that ``actual`` is; else None.
      baseline: the baseline's value; None where there is none.
      actual: what was seen.
      reference: the metric of the best prediction that is the same for all examples.
      interval: the 95 % interval of the number that is compared with the limit.
      result: ``FAIL`` stops the run, ``warn`` does not.
      why: one sentence that explains the outcome.
      kind: of an anomaly, such as ``new_value``; see
        ``components.data_verdict.settings``.
      feature: the feature that it is about.
      policy: the line of the config that decided on an anomaly, such as
        ``validate.rules[2]: warn``; None where the check holds.
      examples: where it was seen, such as a file and a record's number; at most five.
      remedy: what a person can do about a miss.
      command: the verb of ``sluice`` that shows or repairs it, such as ``schema diff``;
        the pipeline's name follows it.
    """

    check: str
    slice: str = "overall"
    limit: int | float | str | None = None
    comparison: Comparator | None = None
    measure: str | None = None
    baseline: int | float | str | None = None
    actual: int | float | str | None = None
    reference: float | None = None
    interval: tuple[float, float] | None = None
    result: Annotated[Result, Field(exclude=True)] = "pass"
    why: str = ""
    kind: str | None = None
    feature: str | None = None
    policy: str | None = None
    examples: tuple[str, ...] = ()
    remedy: str | None = None
    command: str | None = None

    @property
    def passed(self) -> bool:
        return self.result != "FAIL"

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
    def is_within(self) -> bool:
        """Whether the number does not miss its limit; true without a limit."""
        return (self.margin or 0.0) >= 0

    @property
    def sentence(self) -> str:
        """What was missed and where first, as the top of a page has it."""
        if self.policy:
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
            change = signed_text(self.compared or 0.0)
            return f"{text}: {self.measure} change {change}, {limit}"
        if self.is_within:
            return f"{text}, {self.why}"
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

    @model_serializer(mode="wrap")
    def _store(self, to_dict: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Returns the stored form, which has three keys for the result."""
        return {
            **to_dict(self),
            "passed": self.passed,
            "severity": _ACTIONS.get(self.result)
            if self.policy or self.result == "warn"
            else None,
            "answer": _ANSWERS.get(self.result),
        }

    @model_validator(mode="before")
    @classmethod
    def _read(cls, row: Any) -> Any:
        """Returns the arguments as they are, or what ``_store`` has stored."""
        if not isinstance(row, dict):
            return row
        row = dict(row)
        result = "pass" if row.pop("passed") else "FAIL"
        severity, answer = row.pop("severity", None), row.pop("answer", None)
        if answer is not None:
            result = "yes" if answer else "no"
        return {**row, "result": RESULTS.get(severity, result)}


@dataclass(frozen=True)
class Verdict:
    """What a gate decided. It passes only if every row does.

    Attributes:
      gate: one of ``ORDER``.
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
        results = {row.result for row in self.rows}
        return "no" in results and "yes" not in results

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(row for row in self.rows if not row.passed)

    @property
    def warnings(self) -> list[str]:
        """A sentence for each check that a person should look at."""
        return [row.sentence for row in self.rows if row.result == "warn"]

    @property
    def causes(self) -> list[str]:
        """A sentence for each cause of the failures.

        There is one for a metric on a slice, however many limits it misses, and one
        for the reference; for a feature, however many splits; and for all that is wrong
        with the same files.
        """
        rows: dict[tuple[str | None, ...], Check] = {}
        files: set[str] = set()
        for row in self.failures:
            named = set() if row.feature else {file_of(x) for x in row.examples}
            if named and named <= files:
                continue
            files |= named
            key: tuple[str | None, ...] = row.kind, row.feature
            if not row.feature:
                judged = "reference" if row.limit == BETTER_THAN_REFERENCE else "limit"
                key = row.check.removesuffix(" change"), row.slice, judged
            first = rows.setdefault(key, row)
            if row.feature and first is not row:
                rows[key] = replace(first, slice=f"{first.slice}, {row.slice}")
        return [row.sentence for row in rows.values()]

    @property
    def remedies(self) -> list[tuple[str, str | None]]:
        """What repairs the failures, each with the verb of ``sluice`` that helps."""
        found = {row.remedy: row.command for row in self.failures if row.remedy}
        return [*found.items()]

    def to_json(self) -> str:
        """Returns the content of ``verdict.json``."""
        return json.dumps(_ADAPTER.dump_python(self), indent=2)

    def save(self, uri: str) -> None:
        """Writes ``verdict.json`` into an artifact's directory."""
        storage = storage_for(uri)
        storage.make_folder(uri)
        content = self.to_json().encode()
        storage.write_atomically(os.path.join(uri, VERDICT_FILE), content)

    @classmethod
    def load(cls, directory: str | Path) -> Verdict:
        """Reads ``verdict.json`` from an artifact's directory, local or an address.

        Raises:
          OSError: it is not there.
          ValueError: it is damaged.
        """
        content = storage_for(directory).read(os.path.join(directory, VERDICT_FILE))
        return _ADAPTER.validate_python(json.loads(content))

    @model_serializer(mode="wrap")
    def _store(self, to_dict: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**to_dict(self), "passed": self.passed}


_ADAPTER = TypeAdapter(Verdict)


def file_of(example: str) -> str:
    """Returns the file of an example: ``FILE, record 3: ...`` or ``FILE: ...``."""
    return re.split("[,:] ", example, maxsplit=1)[0]


def cell(value: float | str | None) -> str:
    """Returns a limit or value as a table shows it, ``-`` for none."""
    if value is None:
        return "-"
    return number_text(value) if isinstance(value, float) else str(value)
