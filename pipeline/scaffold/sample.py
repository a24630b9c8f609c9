"""Samples the first records of each file, and what TFDV says of their features."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from pipeline.scaffold.infer_schema import infer_schema
from schemas.data_statistics import compute_statistics, decode_records
from schemas.loader import has_one_value
from sluice.errors import DataError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.image_header import ImageHeader, image_header
from sluice.tfrecords.parse_tf_example import parse

RECORDS_PER_FILE = 10_000
MAX_RECORDS = 40_000
MAX_BYTES = 256 << 20
MAX_FILES = 40
# So many images show their formats and sizes.
_MAX_IMAGES = 1000
_IMAGE_FRACTION = 0.95


@dataclass(frozen=True)
class Column:
    """One feature of the sample.

    Attributes:
      feature: of the inferred schema.
      stats: TFDV's.
      values: of all records, a flat Arrow array.
      records: their number.
    """

    feature: schema_pb2.Feature
    stats: statistics_pb2.FeatureNameStatistics
    values: Any
    records: int

    @property
    def name(self) -> str:
        return self.feature.name

    @property
    def type(self) -> str:
        """``INT``, ``FLOAT`` or ``BYTES``."""
        return schema_pb2.FeatureType.Name(self.feature.type)

    @property
    def present(self) -> int:
        """How many of the records have the feature."""
        return getattr(
            self.stats, str(self.stats.WhichOneof("stats"))
        ).common_stats.num_non_missing

    @property
    def is_single(self) -> bool:
        """Whether a record has at most one value."""
        return has_one_value(self.feature)

    @property
    def is_required(self) -> bool:
        """Whether every record has one value."""
        return self.is_single and self.present == self.records

    @cached_property
    def counts(self) -> dict[Any, int]:
        """How often each value occurs."""
        counted = self.values.value_counts().to_pylist()
        return {item["values"]: item["counts"] for item in counted}

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest number."""
        return min(self.counts, default=0), max(self.counts, default=0)

    @property
    def is_text(self) -> bool:
        """Whether bytes are UTF-8."""
        try:
            b"".join(self.counts).decode()
        except UnicodeDecodeError:
            return False
        return True

    @cached_property
    def images(self) -> Counter[ImageHeader]:
        """How many values are images of each format, size and channels."""
        if self.type != "BYTES":
            return Counter()
        values = self.values[:_MAX_IMAGES].to_pylist()
        headers = [header for header in map(image_header, values) if header]
        enough = len(headers) >= _IMAGE_FRACTION * len(values)
        return Counter(headers if enough else [])


@dataclass(frozen=True)
class Sample:
    """Records of some files.

    Attributes:
      columns: the features by name, in the order of their names.
      statistics: TFDV's.
      records: their number.
      is_complete: whether these are all records of all files.
      text: which records were read, such as ``all 1,797 records of 8 files``.
    """

    columns: dict[str, Column]
    statistics: statistics_pb2.DatasetFeatureStatisticsList
    records: int
    is_complete: bool
    text: str


def read_sample(files: Sequence[Path], per_file: int = RECORDS_PER_FILE) -> Sample:
    """Returns the first records of files, at most 40 of them spread evenly over all.

    Args:
      files: TFRecords of tf.Examples, compressed or not.
      per_file: the most records of each.

    Raises:
      DataError, UsageError: a file cannot be read, a record is no tf.Example, or a
        feature has different types.
    """
    count = min(len(files), MAX_FILES)
    per_file = max(1, min(per_file, MAX_RECORDS // count))
    records: list[bytes] = []
    is_complete = count == len(files)
    for index in range(count):
        path = files[index * len(files) // count]
        read = tfrecord.read(path)
        # Each file gets the same share, so large records leave none of them out.
        records += _first(read, path, per_file, MAX_BYTES // count)
        is_complete &= next(read, None) is None
    text = f"the first {len(records):,} records of {count:,} of {len(files):,} files"
    if is_complete:
        number = "1 file" if count == 1 else f"{count:,} files"
        text = f"all {len(records):,} records of {number}"
    statistics = compute_statistics(records)
    batch = decode_records(records)
    stats = {item.path.step[0]: item for item in statistics.datasets[0].features}
    columns = {}
    for feature in sorted(infer_schema(statistics).feature, key=lambda one: one.name):
        array = batch.column(batch.schema.get_field_index(feature.name))
        found = stats[feature.name]
        # Without any value it has no type, and is no column of lists.
        values = array.flatten() if hasattr(array, "flatten") else array.drop_null()
        columns[feature.name] = Column(feature, found, values, len(records))
    return Sample(columns, statistics, len(records), is_complete, text)


def _first(
    records: Iterator[bytes], path: Path, most: int, max_bytes: int
) -> Iterator[bytes]:
    for number, record in enumerate(itertools.islice(records, most), 1):
        try:
            parse(record)
        except ValueError as error:
            where = f"{path}, record {number:,}"
            raise DataError(f"a record is {error}", where=where) from error
        yield record
        max_bytes -= len(record)
        if max_bytes <= 0:
            return
