"""Config sections ``data``, ``examples`` and ``validate``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import AfterValidator, BeforeValidator, StrictInt, model_validator

from components.data_verdict.settings import SPLITS, DataPolicy
from components.tfrecord_gen.select_spans import SpanPattern
from components.tfrecord_gen.settings import CompleteWhen, HashSplits, ImageLimits
from sluice.config_section import (
    Count,
    Directory,
    Fraction,
    Pattern,
    PositiveNumber,
    Section,
    Text,
    expect,
    refuse,
)
from sluice.errors import ConfigError
from sluice.tfrecords.frame_encoding import MAX_MESSAGE_BYTES, MAX_RECORD_BYTES


def _span_pattern(value: str) -> str:
    try:
        SpanPattern.parse(value)
    except ConfigError as error:
        expect(f"a pattern with {error.expected}")
    return value


_SplitPattern = Annotated[Pattern, AfterValidator(_span_pattern)]
_RecordBytes = Annotated[StrictInt, Ge(1), Le(MAX_MESSAGE_BYTES)]


# Of `data.serving`: what our own server has recorded.
REQUESTS = "requests"


class Splits(Section):
    """File patterns below `data.dir`, one per split.

    They may hold `{SPAN}`, or `{YYYY}{MM}{DD}`, and `{VERSION}`. `{SPAN:2}` and
    `{VERSION:2}` take two digits, for numbers that no other text separates.
    """

    train: _SplitPattern
    """Training data of the model and of Transform."""
    eval: _SplitPattern
    """Validation data of early stopping."""
    test: _SplitPattern | None = None
    """Data that the model gate is measured on. null: `eval`, with a warning."""


class RequestLogs(Section):
    """A mapping names logs of model servers."""

    logs: _SplitPattern
    """A pattern of TFRecords of TensorFlow Serving's `PredictionLog`, below
    `data.dir`, with serialized tf.Examples in the requests."""


class Data(Section):
    """Where the data is: `splits`, or else `files` with `hash_splits`.

    The files are TFRecords of tf.Example; those named `*.parquet`, `*.csv` or
    `*.csv.gz` are tables, with a record per row.
    """

    dir: Directory
    """Relative to the project root, absolute, or `gs://BUCKET/PATH`."""
    splits: Splits | None = None
    files: _SplitPattern | None = None
    """A pattern of all files below `dir`; their records are assigned by
    `hash_splits`."""
    hash_splits: HashSplits | None = None
    serving: Literal["requests"] | _SplitPattern | RequestLogs | None = None
    """Serving requests, to measure skew against: a pattern of TFRecords of tf.Example;
    or `requests`, what `sluice serve --record` has recorded since the push."""

    @model_validator(mode="after")
    def _has_splits(self) -> Data:
        if (self.splits is None) == (self.files is None):
            expect("given one of: splits, or files with hash_splits")
        if (self.files is None) != (self.hash_splits is None):
            expect("given files and hash_splits together")
        patterns = list(self.patterns.values())
        if len({*patterns}) < len(patterns):
            refuse("two splits have the same pattern", "splits")
        return self

    @property
    def patterns(self) -> dict[str, str]:
        """Patterns by split; under "" that of records that are hashed into splits."""
        if self.splits is None:
            return {"": self.files or ""}
        found = {name: getattr(self.splits, name) for name in SPLITS}
        return {name: pattern for name, pattern in found.items() if pattern}

    @property
    def split_names(self) -> list[str]:
        """The splits that there are, ``train`` first."""
        if self.hash_splits is not None:
            return list(self.hash_splits.buckets)
        return [name for name in self.patterns if name]


def _complete_when(value: Any) -> Any:
    if value == "always":
        return CompleteWhen()
    one = isinstance(value, dict) and sum(map(bool, value.values())) < 2
    if not (one or isinstance(value, CompleteWhen)):
        expect("always, {marker: NAME} or {quiet_for_s: SECONDS}")
    return value


class Examples(Section):
    """Which records are ingested, and how many may be bad."""

    window: Count = 1
    """Number of spans to use: the newest complete ones."""
    complete_when: Annotated[
        CompleteWhen,
        BeforeValidator(
            _complete_when, json_schema_input_type=Literal["always"] | CompleteWhen
        ),
    ] = CompleteWhen.model_construct()
    max_corrupt_fraction: Fraction = 0.0
    """Maximum fraction of bad records, bytes or files, which are quarantined. Above it
    the data gate fails."""
    max_record_bytes: _RecordBytes = MAX_RECORD_BYTES
    """Maximum length of a record. Longer ones are quarantined without being read, so
    that a small compressed file cannot fill the memory."""
    images: ImageLimits | None = None
    """null: images are not checked."""
    where: Text | None = None
    """A condition on the features of a record in DuckDB's SQL, such as
    `trip_miles > 0`. Records for which it is not true, or needs a missing value, are
    left out, before they are split. Serving requests are all kept."""


class Validate(DataPolicy):
    """What the data gate accepts."""

    stale_after_h: PositiveNumber | None = None
    """Maximum age of the newest span, in hours; older data stops the run before it
    begins. The age of a day counts from its end, midnight in UTC; that of another span,
    and of data without spans, from the time when its newest file was written."""


Sensitive = tuple[Text, ...]
