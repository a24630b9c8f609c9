"""Assignment of records to splits by hash."""

from __future__ import annotations

from collections import Counter

import pytest

from components.tfrecord_gen.checking.hash_splits import HashSplits
from sample_data.tf_example import encode

pytestmark = pytest.mark.unit


def test_shares_are_kept():
    splits = HashSplits(train=8, eval=1, test=1)

    found = Counter(splits.split_of(encode({"n": [n]})) for n in range(5000))

    assert 3850 < found["train"] < 4150
    assert 400 < found["eval"] < 600


def test_by_a_feature_only_its_values_count():
    splits = HashSplits(train=1, eval=1, test=1, by="user")

    for user in range(30):
        found = {
            splits.split_of(encode({"user": [user], "x": [float(n)]})) for n in range(9)
        }
        assert len(found) == 1


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ({"x": [1]}, "the record has no feature 'user'"),
        ({"user": [1.5]}, "the feature 'user' holds floats, not bytes or int64"),
    ],
)
def test_a_record_that_has_no_values_to_hash(features, reason):
    with pytest.raises(LookupError, match=reason):
        HashSplits(train=1, eval=1, by="user").split_of(encode(features))


def test_a_feature_without_values():
    empty = b"\n\x0a\n\x08\n\x04user\x12\x00"

    with pytest.raises(LookupError, match="the feature 'user' has no values"):
        HashSplits(train=1, eval=1, by="user").split_of(empty)
