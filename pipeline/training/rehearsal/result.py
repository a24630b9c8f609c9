"""Result of a rehearsal: findings, assumptions, and what was not checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Accelerator = Literal["tpu", "gpu"]


@dataclass(frozen=True)
class Finding:
    """Something in a step that an accelerator refuses, or may refuse.

    Attributes:
      refused: whether training would fail; if not, it is a warning.
      what: the problem, in a sentence.
      ops: the types of the ops that have it.
      layer: name and class of their layer; None outside of layers.
      location: ``file:line`` of the user's code; None if there is none.
      steps: ``train``, ``eval`` or both; empty if it is not about a step.
    """

    refused: bool
    what: str
    ops: tuple[str, ...] = ()
    layer: str | None = None
    location: str | None = None
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.what}: {', '.join(self.ops)}" if self.ops else self.what]
        parts += [f"layer {self.layer}"] if self.layer else []
        parts += [self.location] if self.location else []
        parts += [f"{' and '.join(self.steps)} step"] if self.steps else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal found.

    Attributes:
      checked: what was compiled or traced, in a line.
      findings: refused ones first; one for each problem and place.
      assumptions: what only the data or the accelerator would tell.
      unchecked: what cannot be checked on this machine.
    """

    accelerator: Accelerator
    checked: str
    findings: tuple[Finding, ...]
    assumptions: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def refused(self) -> list[Finding]:
        """The findings with which training would fail."""
        return [finding for finding in self.findings if finding.refused]

    @property
    def warnings(self) -> list[Finding]:
        """The findings with which it may fail, or be slow."""
        return [finding for finding in self.findings if not finding.refused]


def merge_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns one finding for each problem and place, refused ones first."""
    merged: dict[tuple[object, ...], Finding] = {}
    for item in findings:
        key = (item.refused, item.what, item.layer, item.location)
        known = merged.get(key, item)
        merged[key] = replace(
            known,
            ops=tuple(dict.fromkeys(known.ops + item.ops)),
            steps=tuple(dict.fromkeys(known.steps + item.steps)),
        )
    return tuple(sorted(merged.values(), key=lambda item: not item.refused))
