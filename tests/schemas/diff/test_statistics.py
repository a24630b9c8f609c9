"""Observed data from TFDV's statistics, compared with that from records."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import statistics_pb2

from schemas.diff.observed_data import SplitPresence
from schemas.diff.statistics import observe_statistics, read_statistics
from sluice.errors import WorkspaceError

pytestmark = pytest.mark.unit

TRAIN = """
  num_examples: 100
  features {
    path { step: "fare" } type: FLOAT
    num_stats {
      common_stats { num_non_missing: 90 num_missing: 10 min_num_values: 1
        max_num_values: 2 tot_num_values: 120 }
      min: -3 max: 400 histograms { num_nan: 4 }
    }
  }
  features {
    path { step: "payment" } type: STRING
    string_stats {
      common_stats { num_non_missing: 100 min_num_values: 1 max_num_values: 1
        tot_num_values: 100 }
      unique: 5
      rank_histogram {
        buckets { label: "Cash" sample_count: 60 }
        buckets { label: "__BYTES_VALUE__" sample_count: 30 }
        buckets { label: "Card" sample_count: 7 }
      }
    }
  }
  features {
    path { step: "hour" } type: INT
    string_stats {
      common_stats { num_non_missing: 100 min_num_values: 1 max_num_values: 1
        tot_num_values: 100 }
      unique: 2
      top_values { value: "23" frequency: 60 } top_values { value: "5" frequency: 40 }
    }
  }
  features {
    path { step: "nan" } type: FLOAT
    num_stats {
      common_stats { num_non_missing: 4 num_missing: 96 tot_num_values: 4 }
      histograms { num_nan: 4 }
    }
  }
"""
EVAL = """
  num_examples: 10
  features {
    path { step: "fare" } type: FLOAT
    num_stats {
      common_stats { num_non_missing: 10 min_num_values: 1 max_num_values: 1
        tot_num_values: 10 }
      min: -inf max: 500
    }
  }
"""


def _data(text: str) -> statistics_pb2.DatasetFeatureStatistics:
    return text_format.Parse(text, statistics_pb2.DatasetFeatureStatistics())


def test_splits_are_merged():
    observed = observe_statistics({"train": _data(TRAIN), "eval": _data(EVAL)})
    assert observed.splits == {"train": 100, "eval": 10}
    fare = observed.features["fare"]
    assert fare.types == {"FLOAT": 100}
    assert fare.presence == (
        SplitPresence("train", 90, 100),
        SplitPresence("eval", 10, 10),
    )
    assert (fare.low, fare.high, fare.nans, fare.infinities) == (-3, 500, 4, 1)
    assert (fare.min_values, fare.max_values, fare.values) == (1, 2, 130)
    payment = observed.features["payment"]
    assert payment.counts == {"Cash": 60, "Card": 7}
    assert (payment.not_text, payment.unlisted, payment.distinct) == (30, 3, 5)
    assert payment.presence[1] == SplitPresence("eval", 0, 10)


def test_categories_are_numbers_and_a_number_that_is_none_has_no_range():
    features = observe_statistics({"train": _data(TRAIN)}).features
    assert (features["hour"].low, features["hour"].high) == (5, 23)
    assert (features["nan"].low, features["nan"].high) == (None, None)


def test_files_are_read_by_split_and_damage_is_named(tmp_path):
    data = statistics_pb2.DatasetFeatureStatisticsList(datasets=[_data(EVAL)])
    for split in ("train", "eval"):
        path = tmp_path / f"Split-{split}" / "FeatureStats.pb"
        path.parent.mkdir()
        path.write_bytes(data.SerializeToString())
    found = read_statistics(str(tmp_path)) or {}
    counts = {split: item.num_examples for split, item in found.items()}
    assert counts == {"train": 10, "eval": 10}
    assert read_statistics(str(tmp_path / "none")) is None
    path.write_bytes(b"\xff\xff")
    with pytest.raises(WorkspaceError, match="cannot be read") as damaged:
        read_statistics(str(tmp_path))
    assert str(path) in str(damaged.value)
    with pytest.raises(WorkspaceError, match="no split"):
        read_statistics(str(tmp_path / "Split-train"))


def test_the_largest_integer_is_one_though_its_statistic_is_not():
    text = """
      num_examples: 2
      features {
        path { step: "id" } type: INT
        num_stats {
          common_stats { num_non_missing: 2 tot_num_values: 2 }
          min: -9223372036854775808 max: 9223372036854775807
        }
      }
    """
    data = text_format.Parse(text, statistics_pb2.DatasetFeatureStatistics())
    assert data.features[0].num_stats.max == 2.0**63

    feature = observe_statistics({"train": data}).features["id"]

    assert (feature.low, feature.high) == (-(2**63), 2**63 - 1)
