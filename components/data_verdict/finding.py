"""Finding: one anomaly in the data, before the policy is applied."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """An expectation that does not hold.

    Attributes:
      kind: one of ``anomaly_kind.KINDS``.
      split: the split, ``serving``, or ``overall``.
      check: what was checked, as a row of the verdict shows it.
      why: one sentence; holds no value of a sensitive feature.
      feature: the feature, None for what is about none.
      limit: what was expected.
      baseline: what it was compared with.
      actual: what was seen.
      examples: where it was seen, as far as the finder knows.
    """

    kind: str
    split: str
    check: str
    why: str
    feature: str | None = None
    limit: str | None = None
    baseline: float | str | None = None
    actual: float | str | None = "anomaly"
    examples: tuple[str, ...] = ()
