"""Splits by hash: the same record, or the same user, always lands in the same split."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.records.tf_example_proto import parse

_HASHED_KINDS = ("bytes_list", "int64_list")


@dataclass(frozen=True)
class HashSplits:
    """How records without a split of their own are divided.

    The hash is TFX's (tfx/components/example_gen/base_example_gen_executor.py), so a
    feature's values land in the split that ImportExampleGen gives them.

    Attributes:
        buckets: per split its share of the hash buckets, at least 1 each.
        by: name of a bytes or int64 feature; None: the bytes of the whole record.
    """

    buckets: Mapping[str, int]
    by: str | None = None

    def split_of(self, data: bytes) -> str:
        """Returns the split of a record, a serialized tf.Example.

        Raises:
          LookupError: the record has no values in the feature ``by``; says what it has.
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
        features = parse(data).features.feature
        if self.by not in features:
            raise LookupError(f"the record has no feature {self.by!r}")
        feature = features[self.by]
        kind = feature.WhichOneof("kind")
        if kind is None or not getattr(feature, kind).value:
            raise LookupError(f"the feature {self.by!r} has no values")
        if kind not in _HASHED_KINDS:
            raise LookupError(
                f"the feature {self.by!r} holds floats, not bytes or int64"
            )
        return feature.SerializeToString(deterministic=True)
