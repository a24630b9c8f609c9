"""Samples the first records of each file, and infers a schema from TFDV's statistics.

The schema is TFDV's own, with the domains that a person expects. It is to be reviewed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.tfrecord_gen.scan import scan
from pipeline.config.label import Task
from schemas.data_statistics import (
    common_stats,
    compute_statistics,
    decode_records,
    import_tfdv,
)
from schemas.loader import SERVING, TRAINING, has_one_value, without_values
from sluice.errors import DataError
from sluice.table_files import column_types, is_table
from sluice.tfrecords import tfrecord
from sluice.tfrecords.encoded_images import ImageHeader, image_header
from sluice.tfrecords.frame_reader import RecordError
from sluice.tfrecords.parse_tf_example import parse

RECORDS_PER_FILE = 10_000
MAX_RECORDS = 40_000
MAX_BYTES = 256 << 20
MAX_FILES = 40
# So many images show their formats and sizes.
_MAX_IMAGES = 1000
_IMAGE_FRACTION = 0.95
# A feature with more values gets no domain: new ones are expected. Days are 31.
MAX_DOMAIN = 31
# A split has a feature at least once if so many of all records have it.
_REQUIRED_FRACTION = 0.5


@dataclass(frozen=True)
class Column:
    """One feature of the sample.

    Attributes:
      feature: of the inferred schema.
      stats: TFDV's.
      values: of all records, a flat Arrow array.
      is_present: which records have the feature, bool ``[records]``.
      records: their number.
    """

    feature: schema_pb2.Feature
    stats: statistics_pb2.FeatureNameStatistics
    values: Any
    is_present: np.ndarray
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
        return common_stats(self.stats).num_non_missing

    @property
    def lengths(self) -> tuple[int, int]:
        """The least and the largest number of values of a record that has some."""
        common = common_stats(self.stats)
        return common.min_num_values, common.max_num_values

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
        return not self.stats.string_stats.invalid_utf8_count

    @cached_property
    def images(self) -> Counter[ImageHeader]:
        """How many values are images of each format, size and channels."""
        if self.type != "BYTES":
            return Counter()
        values = self.values[:_MAX_IMAGES].to_pylist()
        known = filter(None, map(image_header, values))
        headers = [header for header in known if header.width]
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


def read_sample(
    files: Sequence[Path | str], per_file: int = RECORDS_PER_FILE
) -> Sample:
    """Returns the first records of files, at most 40 of them spread evenly over all.

    Args:
      files: TFRecords of tf.Examples, compressed or not, or tables.
      per_file: the most records of each.

    Raises:
      DataError, UsageError: a file cannot be read, a record is no tf.Example, or a
        feature has different types.
    """
    count = min(len(files), MAX_FILES)
    per_file = max(1, min(per_file, MAX_RECORDS // count))
    records: list[bytes] = []
    is_complete = count == len(files)
    types = column_types([str(path) for path in files if is_table(str(path))])
    for index in range(count):
        path = files[index * len(files) // count]
        read = _rows(path, types) if is_table(str(path)) else tfrecord.read(path)
        # Each file gets the same share, so large records leave none of them out.
        records += _first(read, path, per_file, MAX_BYTES // count)
        is_complete &= next(read, None) is None
    if not records:
        raise DataError("the files hold no records", where=files[0])
    text = f"the first {len(records):,} records of {count:,} of {len(files):,} files"
    if is_complete:
        number = "1 file" if count == 1 else f"{count:,} files"
        text = f"all {len(records):,} records of {number}"
    statistics = compute_statistics(records)
    batch = decode_records(records)
    stats = {one.path.step[0]: one for one in statistics.datasets[0].features}
    columns = {}
    for feature in sorted(infer_schema(statistics).feature, key=lambda one: one.name):
        name = feature.name
        array = batch.column(batch.schema.get_field_index(name))
        # Without any value it has no type, and is no column of lists.
        values = array.flatten() if hasattr(array, "flatten") else array.drop_null()
        there = array.is_valid().to_numpy(zero_copy_only=False)
        columns[name] = Column(feature, stats[name], values, there, len(records))
    return Sample(columns, statistics, len(records), is_complete, text)


def _rows(path: Path | str, types: Mapping[str, str]) -> Iterator[bytes]:
    for row in scan(str(path), types=types):
        if isinstance(row, RecordError):
            raise DataError(row.reason, where=f"{path}, row {row.number:,}")
        yield row.data


def _first(
    records: Iterator[bytes], path: Path | str, most: int, max_bytes: int
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


def infer_schema(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    label: str | None = None,
    sensitive: Collection[str] = (),
    task: Task = "classification",
) -> schema_pb2.Schema:
    """Returns the inferred schema.

    Args:
      statistics: of all records.
      label: gets a domain of its classes, and is not in the serving environment.
      sensitive: features that get no domain.
      task: of the label; that of a regression has no classes.
    """
    schema = import_tfdv().infer_schema(statistics, max_string_domain_size=MAX_DOMAIN)
    schema.default_environment[:] = [TRAINING, SERVING]
    known = {one.path.step[0]: one for one in statistics.datasets[0].features}
    for feature in schema.feature:
        stats = known[feature.name]
        values: Any = getattr(stats, stats.WhichOneof("stats"))
        common = values.common_stats
        records = common.num_non_missing + common.num_missing
        if common.num_non_missing < _REQUIRED_FRACTION * records:
            feature.presence.ClearField("min_count")
        # TFDV calls 0 and 1 a boolean, which has no classes.
        feature.ClearField("bool_domain")
        if feature.name == label:
            feature.not_in_environment.append(SERVING)
            if task == "regression":
                continue
            if feature.type == schema_pb2.INT:
                set_int_classes(feature, int(values.min), int(values.max))
            elif feature.type == schema_pb2.BYTES and not values.invalid_utf8_count:
                _set_string_classes(schema, feature, values)
        elif feature.type == schema_pb2.INT and values.min >= 0:
            feature.int_domain.min = 0
        elif feature.type == schema_pb2.FLOAT and values.min >= 0:
            feature.float_domain.min = 0
    return without_values(schema, sensitive)


def _set_string_classes(
    schema: schema_pb2.Schema, feature: schema_pb2.Feature, stats: Any
) -> None:
    kept = [one for one in schema.string_domain if one.name != feature.domain]
    del schema.string_domain[:]
    schema.string_domain.extend(kept)
    feature.domain = feature.name
    values = sorted(bucket.label for bucket in stats.rank_histogram.buckets)
    schema.string_domain.add(name=feature.name, value=values)


def set_int_classes(feature: schema_pb2.Feature, low: int, high: int) -> None:
    """Declares whole numbers as classes, all those between two bounds."""
    feature.int_domain.min, feature.int_domain.max = low, high
    feature.int_domain.is_categorical = True
