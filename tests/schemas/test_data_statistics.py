"""Statistics of records."""

from __future__ import annotations

import pytest

from sample_data.tf_example import encode
from schemas.data_statistics import compute_statistics
from sluice.errors import DataError

pytestmark = pytest.mark.tf


def test_a_feature_of_two_types_is_named():
    records = [encode({"a": [n]}) for n in range(98)]
    with pytest.raises(DataError, match="feature.*a"):
        compute_statistics([*records, encode({"a": [b"x"]})])
