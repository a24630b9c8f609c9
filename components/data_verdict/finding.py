"""Finding: one anomaly in the data, before the policy is applied."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """An anomaly in the data; becomes a row of the verdict.

    Attributes:
      kind: one of ``anomaly_kind.KINDS``.
      split: the split, ``serving``, or ``overall``.
      check: name of the check, as in the verdict.
      why: one sentence, without values of sensitive features.
      feature: its name; None if the anomaly is not about a feature.
      limit: expected value.
      baseline: value or data that it was compared with.
      actual: actual value.
      examples: places in the files, where known.
      comparison, measure: see ``Check``.
    """

    kind: str
    split: str
    check: str
    why: str
    feature: str | None = None
    limit: float | str | None = None
    baseline: float | str | None = None
    actual: float | str | None = "anomaly"
    examples: tuple[str, ...] = ()
    comparison: str | None = None
    measure: str | None = None
