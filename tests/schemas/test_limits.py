"""Limits of a schema that would never fail."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.loader import invalid_entries


def faults(text: str) -> list[str]:
    return list(invalid_entries(text_format.Parse(text, schema_pb2.Schema())))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('feature { name: "a" presence { min_fraction: nan } }', "min_fraction is NaN"),
        ('feature { name: "a" drift_comparator { infinity_norm { } } }', "threshold"),
        (
            'feature { name: "a" type: FLOAT skew_comparator { infinity_norm {'
            " threshold: 0.1 } } }",
            "infinity_norm is not measured on numbers: write jensen_shannon_div",
        ),
        ("dataset_constraints { num_examples_drift_comparator { } }", "not measured"),
        ('feature { name: "a" image_domain { max_image_byte_size: 9 } }', "examples."),
    ],
)
def test_an_entry_that_cannot_work_is_named(text, fault):
    (found,) = faults(text)
    assert fault in found
