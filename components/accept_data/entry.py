"""Entry of the data baselines: one accepted data set, as its ``record.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class SplitFacts:
    """Statistics of one split.

    Attributes:
      examples: number of examples.
      file: name of the file with a DatasetFeatureStatisticsList.
      sha256: digest of the file.
    """

    examples: int
    file: str
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One accepted data set.

    Attributes:
      name: of its folder.
      fingerprint: see ``Identity``.
      accepted_at: UTC, as ``2026-11-21T15:27:09+00:00``.
      run_id: of the run that accepted it.
      spans: of the data.
      splits: statistics by split.
      override: a person's reason to accept it although the verdict failed.
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
        """Returns the content of ``record.json``."""
        document = {"schema_version": SCHEMA_VERSION} | asdict(self)
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Entry:
        """Reads a record.

        Raises:
          ValueError: it is not one.
        """
        fields = json.loads(text)
        version = fields.get("schema_version") if isinstance(fields, dict) else None
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"not a record of accepted data: version {version}, not "
                f"{SCHEMA_VERSION}"
            )
        try:
            return TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            wrong = [".".join(map(str, item["loc"])) for item in error.errors()]
            text = ", ".join(wrong)
            raise ValueError(f"not a record of accepted data: {text}") from error
