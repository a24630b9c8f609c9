"""The verdict of a gate: what was checked, the limit, what was seen, and why.

Every gate (data, model, serving) answers in these rows, so the terminal, ``--json``,
the run record and the report can show all of them alike.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

VERDICT_FILE = "verdict.json"


@dataclass(frozen=True)
class Check:
    """One row of a verdict.

    Attributes:
      check: what was checked, such as ``auc`` or ``feature 'fare'``.
      slice: the slice or split, ``overall`` for all of it.
      limit: the limit as a reader would write it, such as ``>= 0.97``.
      baseline: the baseline's value; None where there is none.
      actual: what was seen.
      passed: whether the check holds.
      why: one sentence that explains the outcome.
    """

    check: str
    slice: str
    limit: str | None
    baseline: float | str | None
    actual: float | str | None
    passed: bool
    why: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a gate decided. It passes only if every row does.

    Attributes:
      gate: ``data``, ``model`` or ``serving``.
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
    def failures(self) -> tuple[Check, ...]:
        return tuple(row for row in self.rows if not row.passed)

    def to_dict(self) -> dict:
        """Returns the form that ``--json`` and the run record hold."""
        return {
            "gate": self.gate,
            "passed": self.passed,
            "override": self.override,
            "rows": [asdict(row) for row in self.rows],
        }

    @classmethod
    def from_dict(cls, data: dict) -> Verdict:
        """Reads what ``to_dict`` wrote; ``passed`` is derived again."""
        return cls(
            gate=data["gate"],
            rows=tuple(Check(**row) for row in data["rows"]),
            override=data["override"],
        )

    @classmethod
    def load(cls, directory: str | Path) -> Verdict:
        """Reads ``verdict.json`` from an artifact's directory."""
        return cls.from_dict(json.loads(Path(directory, VERDICT_FILE).read_text()))


def as_text(rows: Sequence[Check]) -> str:
    """Returns the rows as a plain table, for logs and text files."""
    header = ("check", "slice", "limit", "baseline", "actual", "result", "why")
    table = [header] + [
        (
            row.check,
            row.slice,
            cell(row.limit),
            cell(row.baseline),
            cell(row.actual),
            "pass" if row.passed else "FAIL",
            row.why,
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in table
    )


def cell(value: float | str | None) -> str:
    """Returns a limit or value as a table shows it: four decimals, ``-`` for none."""
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
