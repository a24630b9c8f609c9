"""Assigns records to splits by hash, of the record or of a feature."""

from __future__ import annotations

import hashlib
from functools import cached_property

from sluice.config_section import Count, Section, Text

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
