"""What the data gate does about each kind of anomaly: the config's ``validate``.

A policy answers two things: what to do about an anomaly, and which line of the config
said so. It knows nothing of how anomalies are found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

Action = Literal["fail", "warn", "ignore"]


@dataclass(frozen=True)
class Rule:
    """An exception to the default.

    Attributes:
      action: what is done.
      feature: None for every feature, and for what is about no feature.
      anomaly: one of ``anomaly_kind.KINDS``; None for every kind.
    """

    action: Action
    feature: str | None = None
    anomaly: str | None = None


@dataclass(frozen=True)
class Ruling:
    """What is done about an anomaly, and the line of the config that says so."""

    action: Action
    line: str


@dataclass(frozen=True)
class Policy:
    """The config's ``validate``, with the limit on damaged records of ``examples``.

    Attributes:
      default: what is done where no rule matches.
      rules: the last one that matches applies.
      min_examples: per split; 1 where nothing is said.
      max_examples: per split; no limit where nothing is said.
      max_count_change: largest |now - last| / last of a split's number of examples.
      max_corrupt_fraction: of records, bytes or files.
    """

    default: Action = "fail"
    rules: tuple[Rule, ...] = ()
    min_examples: Mapping[str, int] = field(default_factory=dict)
    max_examples: Mapping[str, int] = field(default_factory=dict)
    max_count_change: float | None = None
    max_corrupt_fraction: float = 0.0

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

    def to_json(self) -> str:
        """Returns the form in which a node takes it: sorted keys, always the same."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Reads what ``to_json`` wrote."""
        data = json.loads(text)
        rules = tuple(Rule(**rule) for rule in data.pop("rules"))
        return cls(rules=rules, **data)
