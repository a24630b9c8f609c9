"""The statistics document, from TFDV's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import statistics_pb2

from sluice.errors import WorkspaceError
from sluice.record.documents import statistics_document as module
from sluice.record.documents.feature_statistics import (
    MAX_BUCKETS,
    MAX_RANKS,
    MAX_TOP_VALUES,
)
from sluice.record.documents.statistics_document import statistics_document

pytestmark = pytest.mark.unit

FARE = """
  path { step: "fare" } type: FLOAT
  num_stats {
    common_stats {
      num_non_missing: 9 num_missing: 1 min_num_values: 1 max_num_values: 2
      tot_num_values: 12
    }
    mean: nan std_dev: 1.5 num_zeros: 2 min: -inf median: 3 max: 8
    histograms {
      num_nan: 4
      buckets { low_value: -inf high_value: 0 sample_count: 2 }
      buckets { low_value: 0 high_value: 8 sample_count: 6.5 }
    }
    histograms {
      num_nan: 4 type: QUANTILES
      buckets { low_value: 1 high_value: 3 sample_count: 4 }
    }
  }
"""
PAYMENT = """
  path { step: "trip" step: "payment" } type: STRING
  string_stats {
    common_stats { num_non_missing: 10 min_num_values: 1 max_num_values: 1 }
    unique: 2 avg_length: 4.5
    top_values { value: "Cash" frequency: 7 }
    top_values { value: "__BYTES_VALUE__" frequency: 3 }
    rank_histogram { buckets { label: "Cash" sample_count: 7 } }
  }
"""


def _feature(text: str) -> statistics_pb2.FeatureNameStatistics:
    return text_format.Parse(text, statistics_pb2.FeatureNameStatistics())


def _write(
    folder: Path, *features: statistics_pb2.FeatureNameStatistics, examples: int = 10
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    data = statistics_pb2.DatasetFeatureStatisticsList()
    data.datasets.add(num_examples=examples, features=features)
    (folder / "FeatureStats.pb").write_bytes(data.SerializeToString())
    return folder


def _features(directory: Path, **options: Any) -> list[Any]:
    (split,) = statistics_document(directory, ["train"], **options)["splits"]
    return list(split["features"])


def _only(directory: Path, *features: str, **options: Any) -> list[Any]:
    _write(directory / "Split-train", *map(_feature, features))
    return _features(directory, **options)


def test_numbers(tmp_path: Path) -> None:
    (fare,) = _only(tmp_path, FARE)
    assert fare == {
        "name": "fare",
        "type": "FLOAT",
        "present": 9,
        "missing": 1,
        "min_values": 1,
        "max_values": 2,
        "sensitive": False,
        "numeric": {
            "zeros": 2,
            "nan": 4,
            "mean": "NaN",
            "std_dev": 1.5,
            "min": "-Infinity",
            "median": 3.0,
            "max": 8.0,
            "histogram": {"edges": ["-Infinity", 0.0, 8.0], "counts": [2.0, 6.5]},
            "quantiles": {"edges": [1.0, 3.0], "counts": [4.0]},
        },
        "string": None,
        "bytes": None,
    }
    json.dumps(fare, allow_nan=False)


def test_infinite_values_lie_beyond_the_finite_ones(tmp_path: Path) -> None:
    (fare,) = _only(
        tmp_path,
        """path { step: "fare" } num_stats {
             common_stats { num_non_missing: 8 tot_num_values: 8 }
             histograms {
               buckets { low_value: -inf high_value: -inf sample_count: 1 }
               buckets { low_value: 1 high_value: 2 sample_count: 3 }
               buckets { low_value: 2 high_value: 3 sample_count: 2 }
               buckets { low_value: inf high_value: inf sample_count: 2 }
             } }""",
    )
    assert fare["numeric"]["histogram"] == {
        "edges": ["-Infinity", 1.0, 2.0, 3.0, "Infinity"],
        "counts": [1.0, 3.0, 2.0, 2.0],
    }


def test_no_number_at_all_is_not_zero(tmp_path: Path) -> None:
    (fare,) = _only(
        tmp_path,
        """path { step: "fare" } num_stats {
             common_stats { num_non_missing: 3 tot_num_values: 3 }
             histograms { num_nan: 3 } histograms { num_nan: 3 type: QUANTILES } }""",
    )
    numeric = fare["numeric"]
    assert (numeric["nan"], numeric["min"], numeric["mean"]) == (3, None, None)
    assert numeric["histogram"] is None


def test_strings(tmp_path: Path) -> None:
    (payment,) = _only(tmp_path, PAYMENT)
    assert payment["name"] == "trip.payment"
    assert payment["string"] == {
        "unique": 2,
        "avg_length": 4.5,
        "invalid_utf8": 0,
        "top_values": [{"value": "Cash", "count": 7.0}],
        "rank_histogram": [{"value": "Cash", "count": 7.0}],
    }


def test_bytes_have_counts_and_lengths_only(tmp_path: Path) -> None:
    (image,) = _only(
        tmp_path,
        """path { step: "image" } type: BYTES bytes_stats {
             common_stats { num_non_missing: 5 }
             unique: 5 avg_num_bytes: 140 min_num_bytes: 90 max_num_bytes: 200 }""",
    )
    assert image["type"] == "BYTES"
    assert image["bytes"] == {
        "unique": 5,
        "avg_length": 140.0,
        "min_length": 90.0,
        "max_length": 200.0,
    }


def test_a_struct_and_a_feature_without_statistics(tmp_path: Path) -> None:
    trip, empty = _only(
        tmp_path,
        'path { step: "trip" } type: STRUCT struct_stats '
        "{ common_stats { num_non_missing: 4 num_missing: 6 } }",
        'name: "empty"',
    )
    assert (trip["type"], trip["present"], trip["missing"]) == ("STRUCT", 4, 6)
    assert (empty["name"], empty["present"], empty["numeric"]) == ("empty", 0, None)


def test_sensitive_features_show_counts_and_no_values(tmp_path: Path) -> None:
    fare, payment = _only(tmp_path, FARE, PAYMENT, sensitive={"fare", "trip.payment"})
    assert fare["sensitive"] and payment["sensitive"]
    numeric = fare["numeric"]
    assert (numeric.pop("zeros"), numeric.pop("nan")) == (2, 4)
    assert set(numeric.values()) == {None}
    assert payment["string"]["unique"] == 2
    assert payment["string"]["avg_length"] is None
    assert payment["string"]["top_values"] == [{"value": None, "count": 7.0}]
    assert "Cash" not in json.dumps(payment)


def test_long_content_is_bounded(tmp_path: Path) -> None:
    long = _feature(PAYMENT)
    long.string_stats.top_values[0].value = "x" * 5000
    for _ in range(50):
        long.string_stats.top_values.add(value="y", frequency=1)
    for _ in range(MAX_RANKS):
        long.string_stats.rank_histogram.buckets.add(label="y", sample_count=1)
    fine = _feature(FARE)
    for _ in range(MAX_BUCKETS):
        fine.num_stats.histograms[0].buckets.add()
    _write(tmp_path / "Split-train", long, fine)
    payment, fare = _features(tmp_path)
    top_values = payment["string"]["top_values"]
    # One of the first twenty is the stand-in for bytes.
    assert len(top_values) == MAX_TOP_VALUES - 1
    assert top_values[0]["value"] == "x" * 200 + "..."
    assert payment["string"]["rank_histogram"] is None
    assert fare["numeric"]["histogram"] is None
    assert fare["numeric"]["quantiles"] is not None


def test_wide_data_says_how_many_features_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FEATURES", 2)
    _write(tmp_path, *(_feature(f'name: "f{i}"') for i in range(5)))
    (split,) = statistics_document(tmp_path, [])["splits"]
    assert [item["name"] for item in split["features"]] == ["f0", "f1"]
    assert split["features_left_out"] == 3


def test_splits_come_in_the_order_of_the_artifact(tmp_path: Path) -> None:
    for name, examples in {"train": 8, "eval": 2, "old": 1}.items():
        _write(tmp_path / f"Split-{name}", examples=examples)
    named = statistics_document(tmp_path, ["train", "eval"])["splits"]
    assert [(item["split"], item["examples"]) for item in named] == [
        ("train", 8),
        ("eval", 2),
    ]
    found = statistics_document(tmp_path, [])["splits"]
    assert [item["split"] for item in found] == ["eval", "old", "train"]


def test_statistics_without_splits_are_those_of_transform(tmp_path: Path) -> None:
    folder = _write(tmp_path / "stats", examples=7)
    (split,) = statistics_document(folder, [])["splits"]
    assert (split["split"], split["examples"]) == (None, 7)


def test_of_slices_only_all_examples_are_shown(tmp_path: Path) -> None:
    data = statistics_pb2.DatasetFeatureStatisticsList()
    data.datasets.add(name="payment_Cash", num_examples=6)
    data.datasets.add(name="All Examples", num_examples=10)
    (tmp_path / "FeatureStats.pb").write_bytes(data.SerializeToString())
    (split,) = statistics_document(tmp_path, [])["splits"]
    assert (split["examples"], split["slices_left_out"]) == (10, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\x0a\xff\xff", "statistics cannot be read"), (b"", "no data set in it")],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "FeatureStats.pb").write_bytes(content)
    with pytest.raises(WorkspaceError, match=message) as failure:
        statistics_document(tmp_path, [])
    assert failure.value.where == str(tmp_path / "FeatureStats.pb")


def test_a_missing_split_or_artifact_is_an_error(tmp_path: Path) -> None:
    _write(tmp_path / "Split-train")
    with pytest.raises(FileNotFoundError, match="Split-eval"):
        statistics_document(tmp_path, ["train", "eval"])
    with pytest.raises(FileNotFoundError, match="gone"):
        statistics_document(tmp_path / "gone", [])
