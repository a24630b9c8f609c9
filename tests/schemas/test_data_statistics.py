"""Statistics of records and of runs."""

from __future__ import annotations

import pytest

from sample_data.tf_example import encode
from schemas.data_statistics import compute_statistics
from sluice.errors import DataError

pytestmark = pytest.mark.tf


def test_statistics_of_records():
    records = [
        encode({"a": [n], "s": [b"v%d" % (n % 3)], **({"x": [1.0]} if n > 93 else {})})
        for n in range(98)
    ]
    (found,) = compute_statistics(records).datasets
    features = {item.path.step[0]: item for item in found.features}
    assert found.num_examples == 98
    assert features["a"].num_stats.max == 97
    assert features["x"].num_stats.common_stats.num_missing == 94
    assert features["s"].string_stats.unique == 3
    with pytest.raises(DataError, match="feature.*a"):
        compute_statistics([*records, encode({"a": [b"x"]})])
