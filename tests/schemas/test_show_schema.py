"""The table of a reviewed schema."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.show_schema import show_schema

pytestmark = pytest.mark.unit


def _row(text, sensitive=()):
    schema = text_format.Parse(
        'default_environment: "TRAINING" default_environment: "SERVING" '
        f'feature {{ name: "x" type: INT {text} }} '
        'string_domain { name: "d" value: "a" value: "b" }',
        schema_pb2.Schema(),
    )
    (row,) = show_schema(schema, sensitive)
    return row


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        ("shape { dim { size: 2 } dim { size: 3 } }", "values", "2 x 3"),
        ("presence { min_fraction: 0.995 min_count: 1 }", "presence", ">= 99.5 %"),
        ('domain: "d"', "domain", '"a", "b"'),
        ('string_domain { value: "\\033" }', "domain", '"\\u001b"'),
        ("int_domain { min: 0 max: 9 is_categorical: true }", "domain", "0 .. 9, "
         "categorical"),
        ("float_domain { max: 42.1 disallow_nan: true }", "domain", ".. 42.1"),
        ('in_environment: "A" not_in_environment: "SERVING"', "environments",
         "not SERVING, also A"),
        ("drift_comparator { jensen_shannon_divergence { threshold: 0.1 } } "
         "skew_comparator { infinity_norm { threshold: 0.02 } }", "comparators",
         "drift jensen_shannon_divergence <= 0.1, skew infinity_norm <= 0.02"),
    ],
)  # fmt: skip
def test_a_column(text, column, wanted):
    assert _row(text)[column] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('domain: "d"', "2 values (sensitive)"),
        ("int_domain { min: 1986 is_categorical: true }", "a range (sensitive), "
         "categorical"),
    ],
)  # fmt: skip
def test_a_sensitive_domain_is_counted(text, wanted):
    assert _row(text, sensitive=("x",))["domain"] == wanted
