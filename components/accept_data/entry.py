"""One data set that was accepted, as its ``record.json`` tells of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class SplitFacts:
    """Statistics of one split.

    Attributes:
      examples: their number.
      file: the name of the statistics' file, a DatasetFeatureStatisticsList.
      sha256: its digest.
    """

    examples: int
    file: str
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One data set that was accepted.

    Attributes:
      name: its folder's.
      fingerprint: see ``Identity``.
      accepted_at: UTC, as ``2026-11-21T15:27:09+00:00``.
      run_id: of the run that accepted it.
      spans: that it was made from.
      splits: per split its statistics.
      override: the reason, where a person let it pass.
    """

    name: str
    fingerprint: str
    accepted_at: str
    run_id: str
    spans: tuple[int, ...]
    splits: Mapping[str, SplitFacts]
    override: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of examples of each split."""
        return {split: facts.examples for split, facts in self.splits.items()}

    def to_json(self) -> str:
        """Returns what ``from_json`` reads."""
        document = {"schema_version": SCHEMA_VERSION} | asdict(self)
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Entry:
        """Reads a record.

        Raises:
          ValueError: it is not one.
        """
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("not a record of accepted data")
        if (version := fields.pop("schema_version", None)) != SCHEMA_VERSION:
            raise ValueError(f"a record of version {version}, not {SCHEMA_VERSION}")
        try:
            splits = fields["splits"].items()
            fields["splits"] = {split: SplitFacts(**item) for split, item in splits}
            fields["spans"] = tuple(fields["spans"])
            entry = cls(**fields)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a record of accepted data: {error}") from error
        if wrong := _wrong_types(entry):
            raise ValueError(f"not a record of accepted data: {', '.join(wrong)}")
        return entry


def _wrong_types(entry: Entry) -> list[str]:
    """Returns what of a record is not of its type, as a hand that edits it may do."""
    texts = ("name", "fingerprint", "accepted_at", "run_id")
    wrong = [key for key in texts if not isinstance(getattr(entry, key), str)]
    if not all(isinstance(span, int) for span in entry.spans):
        wrong.append("spans")
    for split, facts in entry.splits.items():
        of_types = isinstance(facts.examples, int) and isinstance(facts.file, str)
        if not of_types:
            wrong.append(f"splits.{split}")
    return wrong
