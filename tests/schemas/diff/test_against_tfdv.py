"""Comparison of ``diff_schema`` with TFDV's validation."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.summarize import observe_summary, summarize
from sample_data.tf_example import encode
from schemas.diff.diff_schema import Expectations, diff_schema
from schemas.diff.observed_data import ObservedData
from schemas.diff.statistics import observe_statistics
from schemas.edit.edit_schema import edit_schema
from schemas.features import TRAINING

pytestmark = pytest.mark.tf

SCHEMA = """
default_environment: "TRAINING"
feature { name: "kind" type: BYTES domain: "kind" presence { min_fraction: 1 }
  shape { dim { size: 1 } } }
string_domain { name: "kind" value: "a" }
feature { name: "fare" type: FLOAT float_domain { min: 0 max: 300 } }
feature { name: "hour" type: INT int_domain { min: 0 max: 23 is_categorical: true } }
feature { name: "one" type: INT shape { dim { size: 1 } } }
feature { name: "few" type: INT value_count { min: 1 max: 1 } }
feature { name: "rare" type: INT presence { min_fraction: 0.9 min_count: 1 } }
feature { name: "gone" type: INT presence { min_count: 1 } }
feature { name: "type" type: INT }
feature { name: "label" type: INT presence { min_count: 1 }
  not_in_environment: "TRAINING" }
feature { name: "both" type: INT presence { min_count: 1 }
  in_environment: "TRAINING" not_in_environment: "TRAINING" }
feature { name: "also" type: INT presence { min_count: 1 } in_environment: "SERVING" }
feature { name: "fits" type: FLOAT shape { dim { size: 1 } } float_domain { max: 42.1 }
  presence { min_fraction: 1 } drift_comparator { infinity_norm { threshold: 0.1 } } }
"""


def _records() -> list[bytes]:
    record: dict[str, Any] = {
        "kind": [b"a"], "fare": [1.0], "hour": [1], "one": [1], "few": [1],
        "rare": [1], "type": [1.5], "fits": [42.1],
    }  # fmt: skip
    odd = {
        **record, "kind": ["\u00fc".encode()], "fare": [-3.0], "hour": [25],
        "one": [1, 2], "few": [1, 2, 3], "new": [b"x", b"y"],
    }  # fmt: skip
    del odd["rare"]
    less = {name: values for name, values in record.items() if name != "kind"}
    return [encode(item) for item in [record] * 50 + [odd] * 20 + [less] * 5]


@pytest.mark.parametrize("source", ["statistics", "records"])
def test_tfdv_agrees(source):
    import tensorflow_data_validation as tfdv
    from tensorflow_data_validation.statistics import stats_impl
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    records = _records()
    batch = ExamplesToRecordBatchDecoder().DecodeBatch(records)

    def anomalies(schema: schema_pb2.Schema) -> tuple[Any, set[str]]:
        options = tfdv.StatsOptions(schema=schema)
        statistics = stats_impl.generate_statistics_in_memory(batch, options)
        found = tfdv.validate_statistics(statistics, schema, environment=TRAINING)
        return statistics, set(found.anomaly_info)

    def observe(statistics: Any) -> ObservedData:
        if source == "statistics":
            return observe_statistics({"train": statistics.datasets[0]})
        return observe_summary({"train": summarize(records)})

    schema = text_format.Parse(SCHEMA, schema_pb2.Schema())
    statistics, wrong = anomalies(schema)
    changes = diff_schema(schema, observe(statistics), Expectations()).changes
    assert {change.feature for change in changes} == wrong
    assert "fits" not in wrong and "label" not in wrong and len(wrong) == 11
    edits = [edit for change in changes for edit in change.edits]
    edited = text_format.Parse(edit_schema(SCHEMA, edits, "x"), schema_pb2.Schema())
    statistics, wrong = anomalies(edited)
    assert wrong == set()
    assert diff_schema(edited, observe(statistics), Expectations()).changes == ()
