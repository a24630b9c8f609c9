"""Settings of an ingestion: its files, their splits, limits of records and images."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, Literal

from pydantic import model_validator

from sluice.config_section import (
    Channels,
    Classes,
    Count,
    NotEmpty,
    PositiveNumber,
    Section,
    Text,
    refuse,
)
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES

# Exec properties of the node, beside those of every ExampleGen.
SETTINGS, SPANS, SCHEDULE = "settings", "spans", "schedule"

# As ``image_format`` names them.
ImageFormat = Literal["png", "jpeg", "bmp"]
_HASHED_KINDS = ("bytes_list", "int64_list")


class HashSplits(Section):
    """How many of the buckets that records are hashed into make up each split."""

    train: Count
    """Buckets of the split `train`."""
    eval: Count
    """Buckets of the split `eval`."""
    test: Count | None = None
    """Buckets of the split `test`. null: no test split."""
    by: Text | None = None
    """The feature whose values are hashed, so that records of the same patient or user
    are never in two splits. null: the whole record is hashed."""

    @cached_property
    def buckets(self) -> dict[str, int]:
        """The number of buckets of each split that there is."""
        counts = {"train": self.train, "eval": self.eval, "test": self.test}
        return {name: count for name, count in counts.items() if count}

    def split_of(self, data: bytes) -> str:
        """Returns the split of a record, a serialized tf.Example.

        The hash is TFX's (tfx/components/example_gen/base_example_gen_executor.py), so
        the splits are the same as ImportExampleGen's.

        Raises:
          LookupError: the feature ``by`` is missing, empty or of floats.
        """
        key = data if self.by is None else self._key(data)
        bucket = int.from_bytes(hashlib.sha256(key).digest(), "big")
        bucket %= sum(self.buckets.values())
        for split, share in self.buckets.items():
            if bucket < share:
                return split
            bucket -= share
        raise AssertionError("buckets do not add up")

    def _key(self, data: bytes) -> bytes:
        # Not above: a config needs no protobuf, 0.01 s of every command.
        from sluice.tfrecords.parse_tf_example import parse

        feature = parse(data).features.feature.get(self.by)
        kind = feature.WhichOneof("kind") if feature is not None else None
        if kind not in _HASHED_KINDS or not getattr(feature, kind).value:
            raise LookupError(
                f"the record has no bytes and no int64 in the feature {self.by!r}"
            )
        return feature.SerializeToString(deterministic=True)


class CompleteWhen(Section):
    """How a span is known to be complete. `always`, the default: every span is."""

    marker: Text | None = None
    """The span's directory contains a file of this name."""
    quiet_for_s: PositiveNumber | None = None
    """None of its files has changed for this many seconds."""


class ImageLimits(Section):
    """Limits of an image, which must also be decodable by TensorFlow.

    The size is read from the header, so images that are too large are not decoded.
    """

    min_side: Count = 1
    """Minimum length of the shorter side, in pixels."""
    max_side: Count = 16_384
    """Maximum length of the longer side, in pixels."""
    max_pixels: Count = 50_000_000
    """Maximum height times width, so that a small file cannot fill the memory."""
    channels: Channels | None = None
    """Channels of the encoded image: 1 gray, 3 colour, 4 with alpha. null: any, as
    training decodes all to what `features` says."""
    formats: NotEmpty[tuple[ImageFormat, ...]] = ("png", "jpeg", "bmp")
    """Formats that are allowed."""

    @model_validator(mode="after")
    def _has_range(self) -> ImageLimits:
        if self.min_side > self.max_side:
            refuse("min_side is above max_side", "min_side")
        return self


class ImageCheck(ImageLimits):
    """A feature that holds encoded images, and their limits.

    Attributes:
        feature: name of the bytes feature.
        decoded_channels: channels that training decodes it to.
        is_sensitive: whether its bytes are withheld.
    """

    feature: Text
    decoded_channels: Channels = 3
    is_sensitive: bool = False


class PixelsCheck(Section):
    """A feature that holds raw pixels; lists of numbers are the schema's to check."""

    feature: Text
    size: Count
    dtype: Literal["uint8", "float32"]


class LabelCheck(Section):
    """The values of a label, where statistics do not tell whether all are classes.

    Attributes:
        feature: the label.
        values: that are allowed.
        is_one_hot: whether a record has a 1 for one class, and 0 for the others.
    """

    feature: Text
    values: Classes
    is_one_hot: bool = False

    @cached_property
    def known(self) -> frozenset[Any]:
        """The values as records have them."""
        return frozenset(x.encode() if isinstance(x, str) else x for x in self.values)


class Ingestion(Section):
    """What a ``TFRecordGen`` node ingests: its exec property ``settings``.

    Attributes:
      base: the data's directory, or an address such as ``gs://bucket/trips``.
      patterns: by split; under "" that of files whose records are hashed into splits.
      hash_splits: of the pattern under "".
      images: features whose images are checked.
      pixels: features whose raw pixels are checked.
      label: the check of the label's values.
      types: by feature its kind of list, as ``parse_tf_example.KINDS``. That of other
        features is the first record's.
      max_record_bytes: longer records are quarantined unread.
      window: how many spans, the newest complete ones.
      complete_when: when a span counts as complete.
      are_logs: whether the records are ``PredictionLog``, with examples in them.
      where: a condition on the records that are kept.
      expect: conditions that are counted, see ``conditions``.
      lists: features with more than one value, in conditions.
    """

    base: str
    patterns: dict[str, str]
    hash_splits: HashSplits | None = None
    images: tuple[ImageCheck, ...] = ()
    pixels: tuple[PixelsCheck, ...] = ()
    label: LabelCheck | None = None
    types: dict[str, str] = {}
    max_record_bytes: int = MAX_RECORD_BYTES
    window: int = 1
    complete_when: CompleteWhen = CompleteWhen.model_construct()
    are_logs: bool = False
    where: str | None = None
    expect: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """All conditions, that of ``where`` first."""
        return self.expect if self.where is None else (self.where, *self.expect)

    @property
    def split_names(self) -> list[str]:
        """The splits of the output."""
        return list(
            self.patterns if self.hash_splits is None else self.hash_splits.buckets
        )


class Schedule(Section):
    """What the ingestion of a scheduled run checks: its property ``schedule``.

    Attributes:
      watermark: where the data of the last complete run is recorded.
      stale_after_h: maximum age of the newest span; None for no limit.
    """

    watermark: str
    stale_after_h: float | None = None
