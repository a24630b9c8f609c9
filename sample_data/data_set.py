"""Declaration of a data set: where its records come from, and its splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# The part of a source that is not divided into train and test.
ALL = "all"


@dataclass(frozen=True)
class Split:
    """One split of a data set.

    Attributes:
      name: ``train``, ``eval`` or ``test``.
      records: number of records; a weight if the source has more or fewer.
      shards: number of files.
      part: part of the source that contains the records.
    """

    name: str
    records: int
    shards: int
    part: str = ALL


# For data sets that are not published in splits.
EIGHT_ONE_ONE = (Split("train", 8, 8), Split("eval", 1, 2), Split("test", 1, 2))


@dataclass(frozen=True)
class Records:
    """Serialized tf.Examples by their position in the source, made when they are asked.

    Attributes:
      make: returns the record at a position.
      left_out: number of files in the source that are in no record.
    """

    count: int
    make: Callable[[int], bytes]
    left_out: int = 0


# Records by part, such as ``train`` and ``test``, or ``ALL``.
Parts = Mapping[str, Records]


@dataclass(frozen=True)
class DataSet:
    """A data set that can be written as TFRecords.

    Attributes:
      name: of the data set, its config and its schema.
      description: one line, with size and source.
      splits: together they contain every record.
      read: parses the original files at a path; that of images takes ``skip_bad``.
      files: what ``read`` parses; empty if a package contains the data set.
      downloads: the SHA-256 of each file by its address; archives are unpacked.
      version: increased when the same seed gives other records.
    """

    name: str
    description: str
    licence: str
    splits: tuple[Split, ...]
    read: Callable[..., Parts]
    files: str = ""
    downloads: Mapping[str, str] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    gzip: bool = True
    version: int = 1
