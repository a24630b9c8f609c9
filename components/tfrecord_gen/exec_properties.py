"""Exec properties of a ``TFRecordGen`` node, as strings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.checking.image_check import ImageCheck
from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.span_choice import chosen_window
from components.tfrecord_gen.spans.window import Window, read_spans

SPANS = "spans"
SCHEDULE = "schedule"


@dataclass(frozen=True)
class Schedule:
    """What the ingestion of a scheduled run checks, since nobody has before it.

    Attributes:
      watermark: where the data of the last complete run is recorded.
      stale_after_h: maximum age of the newest span; None for no limit.
    """

    watermark: str
    stale_after_h: float | None = None

    def to_json(self) -> str:
        """Returns the exec property."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """Reads what ``to_json`` returned."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class ExecProperties:
    """The node's own properties, beside those of every ExampleGen.

    Attributes:
      input_base: the data's directory or address.
      patterns: by split; None stands for files whose records are hashed into splits.
      hash_splits: of the pattern under None.
      images: features whose images are checked.
      max_record_bytes: longer records are quarantined unread.
      window: how many spans.
      complete_when: when a span counts as complete.
    """

    input_base: str
    patterns: Mapping[str | None, str]
    hash_splits: HashSplits | None
    images: tuple[ImageCheck, ...]
    max_record_bytes: int
    window: int
    complete_when: CompleteWhen

    @property
    def split_names(self) -> list[str]:
        """The splits of the output."""
        if self.hash_splits is not None:
            return list(self.hash_splits.buckets)
        return [split for split in self.patterns if split]

    def to_dict(self) -> dict[str, str | int]:
        """Returns the properties by name, without ``input_base``."""
        hashed, complete = self.hash_splits, self.complete_when
        return {
            "patterns": json.dumps(
                {split or "": pattern for split, pattern in self.patterns.items()}
            ),
            "hash_splits": json.dumps(hashed and hashed.model_dump()),
            "images": json.dumps([check.model_dump() for check in self.images]),
            "max_record_bytes": self.max_record_bytes,
            "window": self.window,
            "complete_when": complete.model_dump_json(),
        }

    @classmethod
    def from_dict(cls, properties: Mapping[str, Any]) -> ExecProperties:
        """Reads a node's exec properties; other properties are ignored."""
        hashed = json.loads(properties["hash_splits"])
        patterns = json.loads(properties["patterns"])
        return cls(
            input_base=properties["input_base"],
            patterns={split or None: pattern for split, pattern in patterns.items()},
            hash_splits=HashSplits(**hashed) if hashed else None,
            images=tuple(
                ImageCheck.model_validate(item)
                for item in json.loads(properties["images"])
            ),
            max_record_bytes=int(properties["max_record_bytes"]),
            window=int(properties["window"]),
            complete_when=CompleteWhen.model_validate_json(properties["complete_when"]),
        )

    def choose(self, spans: str, now_s: float) -> Window:
        """Returns the window chosen for this run; selects one if none was chosen.

        Args:
          spans: to select, in the form of ``Window.spans_json``; "" for the newest.
          now_s: seconds since 1970.

        Raises:
          ConfigError, DataError, UsageError: as ``select_spans`` does.
        """
        chosen = chosen_window(self.input_base, self.patterns)
        return chosen or select_spans(
            self.input_base,
            self.patterns,
            self.window,
            self.complete_when,
            now_s,
            read_spans(spans),
        )
