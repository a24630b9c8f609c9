"""Counts the features of tf.Examples, in bounded memory.

``semantic_type`` and ``infer_schema`` interpret the counts. Distinct values are kept up
to a limit, so that domains can be proposed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.diff.observed_data import (
    ObservedData,
    ObservedFeature,
    SplitPresence,
    merge_splits,
)
from sluice.errors import DataError
from sluice.tfrecords import parse_tf_example
from sluice.tfrecords.image_header import ImageHeader, image_header

# Limits per feature: values beyond either are counted, but not each by itself.
MAX_DISTINCT = 10_000
MAX_VALUE_BYTES = 256

Kind = Literal["int", "float", "bytes"]
Value = int | float | bytes

_KINDS: dict[str, Kind] = {
    "int64_list": "int",
    "float_list": "float",
    "bytes_list": "bytes",
}


@dataclass
class FeatureSummary:
    """Counts of one feature over all records.

    Attributes:
      records: number of records, with the feature or without.
      kinds: number of records that have it as ``int``, ``float`` or ``bytes``.
      values: how many values there are over all records.
      min_values: the fewest values in a record that has it.
      counts: how often each value occurs, in the order of first occurrence; not
        complete where ``many``. NaN, infinities and bytes longer than
        ``MAX_VALUE_BYTES`` are not in it.
      many: there are more than ``MAX_DISTINCT`` values, or long ones.
      low: the smallest number; None for bytes. NaN and infinities do not count.
      longest_bytes: the length of the longest value; 0 for numbers.
      not_text: how many values (each distinct one once) are not UTF-8.
      images: how many values begin as an image of each format, size and channels.
    """

    name: str
    records: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    values: int = 0
    min_values: int = 0
    max_values: int = 0
    counts: dict[Value, int] = field(default_factory=dict)
    many: bool = False
    low: int | float | None = None
    high: int | float | None = None
    nans: int = 0
    infinities: int = 0
    longest_bytes: int = 0
    not_text: int = 0
    images: Counter[ImageHeader] = field(default_factory=Counter)

    @property
    def present(self) -> int:
        """How many of the records have at least one value."""
        return self.kinds.total()

    @property
    def kind(self) -> Kind | None:
        """The kind in most records; None if no record has a value."""
        return next((kind for kind, _ in self.kinds.most_common(1)), None)

    @property
    def fraction(self) -> float:
        """Fraction of the records that have it."""
        return self.present / self.records if self.records else 0.0

    @property
    def always(self) -> bool:
        """Whether every record has it."""
        return 0 < self.records == self.present

    @property
    def distinct(self) -> int:
        """Number of different values; a minimum if ``many``."""
        return len(self.counts)

    @property
    def single(self) -> bool:
        """Whether no record has more than one value."""
        return self.max_values <= 1

    def add(self, kind: Kind, values: Sequence[Any]) -> None:
        """Counts the values of one more record."""
        count = len(values)
        if not count:
            return
        self.min_values = min(self.min_values, count) if self.kinds else count
        self.max_values = max(self.max_values, count)
        self.kinds[kind] += 1
        self.values += count
        add = self._add_bytes if kind == "bytes" else self._add_number
        for value in values:
            # The usual case: a known value, which changes nothing but its count.
            if value in self.counts and kind != "bytes":
                self.counts[value] += 1
            else:
                add(value)

    def _add_number(self, value: int | float) -> None:
        if not math.isfinite(value):
            self.nans += math.isnan(value)
            self.infinities += math.isinf(value)
            return
        self.low = value if self.low is None else min(self.low, value)
        self.high = value if self.high is None else max(self.high, value)
        self._count(value)

    def _add_bytes(self, value: bytes) -> None:
        self.longest_bytes = max(self.longest_bytes, len(value))
        header = image_header(value)
        if header:
            self.images[header] += 1
        if len(value) > MAX_VALUE_BYTES:
            self.many = True
            if not header:
                self.not_text += not _is_text(value)
        else:
            if value not in self.counts:
                self.not_text += not _is_text(value)
            self._count(value)

    def _count(self, value: Value) -> None:
        if value in self.counts:
            self.counts[value] += 1
        elif len(self.counts) < MAX_DISTINCT:
            self.counts[value] = 1
        else:
            self.many = True


@dataclass(frozen=True)
class Summary:
    """Counts of all features by name, in the order of their names."""

    records: int
    features: Mapping[str, FeatureSummary]


def summarize(
    records: Iterable[bytes], place: Callable[[], str] | None = None
) -> Summary:
    """Returns the counts over serialized tf.Examples.

    For an error ``place`` returns the location of the current record, else its number.

    Raises:
      DataError: a record is no tf.Example.
    """
    number = 0
    found: dict[str, FeatureSummary] = {}
    for number, data in enumerate(records, 1):
        try:
            example = parse_tf_example.parse(data)
        except ValueError as error:
            raise DataError(
                f"a record is {error}",
                where=place() if place else f"record {number:,}",
                expected="a tf.Example in every record",
                hint="correct the pattern, or write the file again",
            ) from error
        features = example.features.feature
        for name in features:
            if name not in found:
                found[name] = FeatureSummary(name)
            feature = features[name]
            kind = feature.WhichOneof("kind")
            if kind is not None:
                # Slicing makes a list, which is iterated four times as fast.
                found[name].add(_KINDS[kind], getattr(feature, kind).value[:])
    for summary in found.values():
        summary.records = number
    return Summary(number, dict(sorted(found.items())))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_TYPES = {"int": "INT", "float": "FLOAT", "bytes": "BYTES"}


def observe_summary(splits: Mapping[str, Summary]) -> ObservedData:
    """Returns the summaries of all splits as observed data."""
    return merge_splits(
        {
            split: (
                summary.records,
                {name: _feature(item) for name, item in summary.features.items()},
            )
            for split, summary in splits.items()
        }
    )


def _feature(summary: FeatureSummary) -> ObservedFeature:
    counts: dict[str, int] = {}
    not_text = 0
    for value, count in summary.counts.items():
        text = _text(value)
        if text is None:
            not_text += count
        else:
            counts[text] = count
    finite = summary.values - summary.nans - summary.infinities
    return ObservedFeature(
        name=summary.name,
        types={_TYPES[kind]: count for kind, count in summary.kinds.items()},
        presence=(SplitPresence("", summary.present, summary.records),),
        values=summary.values,
        min_values=summary.min_values,
        max_values=summary.max_values,
        low=summary.low,
        high=summary.high,
        nans=summary.nans,
        infinities=summary.infinities,
        counts=counts,
        distinct=summary.distinct,
        at_least=summary.many,
        unlisted=max(0, finite - sum(summary.counts.values())),
        not_text=not_text,
    )


def _text(value: Any) -> str | None:
    """Returns a value as TFDV's statistics write it; None for binary data."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
