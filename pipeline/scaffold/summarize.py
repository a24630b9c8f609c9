"""Counts what records of tf.Example hold, feature by feature, in bounded memory.

Only counts: ``semantic_type`` and ``infer_schema`` decide what follows from them.
The values themselves are kept while they are few, so that domains can be proposed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sluice.errors import DataError
from sluice.records import tf_example_proto
from sluice.records.image_header import ImageHeader, image_header

# What is kept per feature: beyond either, values are counted but not told apart.
MAX_DISTINCT = 10_000
MAX_VALUE_BYTES = 256

Kind = Literal["int", "float", "bytes"]
Value = int | float | bytes

_KINDS: dict[str, Kind] = {
    "int64_list": "int",
    "float_list": "float",
    "bytes_list": "bytes",
}


@dataclass(frozen=True)
class FeatureSummary:
    """One feature over all records.

    Attributes:
      name: in the records.
      records: how many records were looked at, with the feature or without.
      present: how many of them have at least one value.
      kinds: how many records have it as ``int``, ``float`` or ``bytes``.
      values: how many values there are over all records.
      min_values: the fewest values in a record that has it.
      max_values: the most values in a record.
      counts: how often each value occurs, in the order of first occurrence; not
        complete where ``many``. NaN, infinities and bytes longer than
        ``MAX_VALUE_BYTES`` are not in it.
      many: there are more than ``MAX_DISTINCT`` values, or long ones.
      low: the smallest number; None for bytes. NaN and infinities do not count.
      high: the largest number.
      nans: how many values are not a number.
      infinities: how many values are infinite.
      longest_bytes: the length of the longest value; 0 for numbers.
      not_text: how many values (each distinct one once) are not UTF-8.
      images: how many values begin as an image of each format, size and channels.
    """

    name: str
    records: int
    present: int = 0
    kinds: Mapping[Kind, int] = field(default_factory=dict)
    values: int = 0
    min_values: int = 0
    max_values: int = 0
    counts: Mapping[Value, int] = field(default_factory=dict)
    many: bool = False
    low: int | float | None = None
    high: int | float | None = None
    nans: int = 0
    infinities: int = 0
    longest_bytes: int = 0
    not_text: int = 0
    images: Mapping[ImageHeader, int] = field(default_factory=dict)

    @property
    def kind(self) -> Kind | None:
        """What most records have; None where no record has a value."""
        most = sorted(self.kinds.items(), key=lambda item: -item[1])
        return most[0][0] if most else None

    @property
    def fraction(self) -> float:
        """The part of the records that have it, 0 to 1."""
        return self.present / self.records if self.records else 0.0

    @property
    def always(self) -> bool:
        """Whether every record has it."""
        return 0 < self.records == self.present

    @property
    def distinct(self) -> int:
        """How many different values; where ``many``, at least so many."""
        return len(self.counts)

    @property
    def single(self) -> bool:
        """Whether no record has more than one value."""
        return self.max_values <= 1


@dataclass(frozen=True)
class Summary:
    """What the records hold.

    Attributes:
      records: how many were looked at.
      features: by name, in the order of their names.
    """

    records: int
    features: Mapping[str, FeatureSummary]


def summarize(
    records: Iterable[bytes], place: Callable[[], str] | None = None
) -> Summary:
    """Returns the counts over serialized tf.Examples.

    Args:
      records: one tf.Example each.
      place: says where the record at hand is, for the error; its number if left out.

    Raises:
      DataError: a record is no tf.Example.
    """
    number = 0
    collectors: dict[str, _Collector] = {}
    for number, data in enumerate(records, 1):
        try:
            example = tf_example_proto.parse(data)
        except ValueError as error:
            raise DataError(
                f"A record is {error}.",
                where=place() if place else f"record {number:,}",
                expected="a tf.Example in every record",
                hint="correct the pattern, or write the file again",
            ) from error
        features = example.features.feature
        for name in features:
            if name not in collectors:
                collectors[name] = _Collector(name)
            feature = features[name]
            kind = feature.WhichOneof("kind")
            if kind is not None:
                # A slice is a list, which is read four times as fast.
                collectors[name].add(_KINDS[kind], getattr(feature, kind).value[:])
    return Summary(
        number, {name: collectors[name].result(number) for name in sorted(collectors)}
    )


class _Collector:
    """Adds up one feature."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: Counter[Kind] = Counter()
        self._counts: dict[Value, int] = {}
        self._images: Counter[ImageHeader] = Counter()
        self._values = self._min_values = self._max_values = 0
        self._low: int | float | None = None
        self._high: int | float | None = None
        self._nans = self._infinities = self._longest = self._not_text = 0
        self._many = False

    def add(self, kind: Kind, values: Sequence[Any]) -> None:
        count = len(values)
        if not count:
            return
        first = not self._kinds
        self._kinds[kind] += 1
        self._values += count
        self._min_values = count if first else min(self._min_values, count)
        self._max_values = max(self._max_values, count)
        add = self._add_bytes if kind == "bytes" else self._add_number
        for value in values:
            # What most values are: one that has been seen, so that its facts are known.
            if value in self._counts and kind != "bytes":
                self._counts[value] += 1
            else:
                add(value)

    def result(self, records: int) -> FeatureSummary:
        return FeatureSummary(
            name=self._name,
            records=records,
            present=self._kinds.total(),
            kinds=dict(self._kinds),
            values=self._values,
            min_values=self._min_values,
            max_values=self._max_values,
            counts=self._counts,
            many=self._many,
            low=self._low,
            high=self._high,
            nans=self._nans,
            infinities=self._infinities,
            longest_bytes=self._longest,
            not_text=self._not_text,
            images=dict(self._images),
        )

    def _add_number(self, value: int | float) -> None:
        if not math.isfinite(value):
            self._nans += math.isnan(value)
            self._infinities += math.isinf(value)
            return
        self._low = value if self._low is None else min(self._low, value)
        self._high = value if self._high is None else max(self._high, value)
        self._count(value)

    def _add_bytes(self, value: bytes) -> None:
        self._longest = max(self._longest, len(value))
        header = image_header(value)
        if header:
            self._images[header] += 1
        if len(value) > MAX_VALUE_BYTES:
            self._many = True
            if not header:
                self._not_text += not _is_text(value)
        else:
            if value not in self._counts:
                self._not_text += not _is_text(value)
            self._count(value)

    def _count(self, value: Value) -> None:
        if value in self._counts:
            self._counts[value] += 1
        elif len(self._counts) < MAX_DISTINCT:
            self._counts[value] = 1
        else:
            self._many = True


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
