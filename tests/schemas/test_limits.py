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
        (
            'feature { name: "a" presence { min_fraction: nan } }',
            "feature 'a'.presence.min_fraction is NaN; every comparison with NaN is "
            "false",
        ),
        (
            'feature { name: "a" drift_comparator { infinity_norm { } } }',
            "feature 'a'.drift_comparator has no threshold",
        ),
        (
            'feature { name: "a" type: FLOAT skew_comparator { infinity_norm {'
            " threshold: 0.1 } } }",
            "feature 'a'.skew_comparator.infinity_norm is not measured on numbers: "
            "write jensen_shannon_divergence",
        ),
        (
            "dataset_constraints { num_examples_drift_comparator {"
            " max_fraction_threshold: 1.5 } }",
            "dataset_constraints.num_examples_drift_comparator is not measured: set "
            "validate.max_count_change",
        ),
        (
            'feature { name: "a" image_domain { max_image_byte_size: 9 } }',
            "feature 'a'.image_domain.max_image_byte_size is not measured: "
            "set examples.images",
        ),
    ],
)
def test_an_entry_that_cannot_work_is_named(text, fault):
    assert faults(text) == [fault]
