"""What data shows is accepted into a schema, and into its text."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.schema_rows import anomaly_kind
from sample_data.tf_example import encode
from schemas.data_statistics import compute_statistics, import_tfdv
from schemas.edit_schema import ACCEPTABLE, accept_change, edit_text, schema_text
from schemas.loader import TRAINING
from sluice.errors import ConfigError

SCHEMA = """
default_environment: "TRAINING"
feature { name: "kind" type: BYTES domain: "kind" presence { min_fraction: 1 }
  shape { dim { size: 1 } } }
string_domain { name: "kind" value: "a" }
feature { name: "inline" type: BYTES string_domain { value: "a" } }
feature { name: "fare" type: FLOAT float_domain { min: 0 max: 300 } }
feature { name: "hour" type: INT int_domain { min: 0 max: 23 is_categorical: true } }
feature { name: "one" type: INT shape { dim { size: 1 } } }
feature { name: "few" type: INT value_count { min: 1 max: 1 } }
feature { name: "rare" type: INT presence { min_fraction: 0.9 min_count: 1 } }
feature { name: "gone" type: INT presence { min_count: 1 } }
feature { name: "type" type: INT }
feature { name: "label" type: INT presence { min_count: 1 }
  not_in_environment: "TRAINING" }
feature { name: "fits" type: FLOAT shape { dim { size: 1 } } float_domain { max: 42.1 }
  presence { min_fraction: 1 } drift_comparator { infinity_norm { threshold: 0.1 } } }
"""
RECORD: dict[str, Any] = {
    "kind": [b"a"], "fare": [1.0], "hour": [1], "one": [1], "few": [1], "rare": [1],
    "type": [1.5], "fits": [42.1], "inline": [b"a"],
}  # fmt: skip
ODD = {
    **RECORD, "kind": ["\u00fc".encode()], "fare": [-3.0], "hour": [25], "one": [1, 2],
    "few": [1, 2, 3], "new": [b"x", b"y"], "inline": [b"b"],
}  # fmt: skip


def without(record, name):
    return {key: values for key, values in record.items() if key != name}


def parse(text):
    return text_format.Parse(text, schema_pb2.Schema())


@pytest.mark.tf
def test_what_is_accepted_is_no_anomaly_any_more():
    """Each change is about its own fields: a drift comparator, a domain stay."""
    records = [RECORD] * 50 + [without(ODD, "rare")] * 20 + [without(RECORD, "kind")]
    halves = records[::2], records[1::2]
    statistics = [compute_statistics(map(encode, half)) for half in halves]

    def anomalies(schema):
        return {
            f"{feature}.{anomaly_kind(reason.type)}"
            for found in statistics
            for feature, info in import_tfdv()
            .validate_statistics(found, schema, environment=TRAINING)
            .anomaly_info.items()
            for reason in info.reason
        }

    schema = before = parse(SCHEMA)
    found = anomalies(schema)
    assert found == {
        "kind.new_value",
        "kind.missing",
        "kind.wrong_shape",
        "inline.new_value",
        "fare.out_of_range",
        "hour.out_of_range",
        "one.wrong_shape",
        "few.wrong_shape",
        "rare.missing",
        "gone.missing",
        "type.wrong_type",
        "new.new_feature",
    }
    for name, _, kind in sorted(change.partition(".") for change in found):
        if kind in ACCEPTABLE:
            schema = accept_change(schema, kind, name, statistics)
    assert anomalies(schema) == {"type.wrong_type"}
    features = {feature.name: feature for feature in schema.feature}
    assert features["fits"] == before.feature[-1]
    assert features["hour"].int_domain.is_categorical
    assert (features["hour"].int_domain.min, features["hour"].int_domain.max) == (0, 25)
    # TensorFlow rejects records without a feature that has a shape.
    assert features["one"].value_count.max == 2
    assert features["kind"].value_count.max == 1
    text = schema_text(before)
    assert parse(edit_text(text, before, schema, "x")) == schema


@pytest.mark.tf
def test_new_values_are_appended_to_a_domain_whose_order_stays():
    """The order of the label's domain is that of the classes."""
    text = 'feature { name: "x" type: BYTES string_domain { value: "%s" } }'
    schema = parse(text % 'z" value: "a" value: "m')
    statistics = [compute_statistics([encode({"x": [x]})]) for x in (b"b", b"y")]
    for found in statistics:
        schema = accept_change(schema, "new_value", "x", [found])
    assert list(schema.feature[0].string_domain.value) == ["z", "a", "m", "b", "y"]


@pytest.mark.unit
def test_only_the_block_changes_and_comments_around_it_stay():
    text = '# all\nfeature {\n  name: "a" # }\n}  # the end\nfeature { name: "b" }\n'
    before = parse(text)
    after = schema_pb2.Schema(feature=[{"name": "a", "type": "INT"}, {"name": "b"}])
    after.feature.add(name="c")

    assert edit_text(text, before, after, "schema.pbtxt") == (
        '# all\nfeature {\n  name: "a"\n  type: INT\n}  # the end\n'
        'feature { name: "b" }\n\nfeature {\n  name: "c"\n}\n'
    )


@pytest.mark.unit
def test_text_in_another_layout_is_left_to_the_user():
    text = "feature { name: 'a' }"
    after = schema_pb2.Schema(feature=[{"name": "a", "type": "INT"}])
    with pytest.raises(ConfigError, match="nothing was written: no feature 'a' from"):
        edit_text(text, parse(text), after, "schema.pbtxt")
