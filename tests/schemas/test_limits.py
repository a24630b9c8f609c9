"""Invalid schema entries, compared with TFDV's behaviour."""

from __future__ import annotations

import itertools

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from sample_data.tf_example import encode
from schemas.data_statistics import compute_statistics
from schemas.loader import invalid_entries


def faults(text: str) -> list[str]:
    return list(invalid_entries(text_format.Parse(text, schema_pb2.Schema())))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            'feature { name: "a" int_domain { min: 5 max: 1 } }',
            "feature 'a'.int_domain.max is 1, less than min, which is 5",
        ),
        (
            'feature { name: "a" presence { min_fraction: nan } }',
            "feature 'a'.presence.min_fraction is NaN; every comparison with NaN is "
            "false",
        ),
        (
            'feature { name: "a" struct_domain { feature { name: "b" '
            "shape { dim { size: 0 } } } } }",
            "feature 'a'.struct_domain.feature 'b'.shape.dim number 1.size is 0, less "
            "than 1",
        ),
        (
            'int_domain { name: "shared" min: 1 max: 0 }',
            "int_domain 'shared'.max is 0, less than min, which is 1",
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


NUMBERS = (-3, -1, 0, 1, 5)
FRACTIONS = ("nan", "-inf", "inf", "-0.5", "0", "1", "1.5")
FIELDS = [
    *(f"presence {{ min_fraction: {share} }}" for share in FRACTIONS),
    *(
        f"distribution_constraints {{ min_domain_mass: {share} }}"
        for share in FRACTIONS
    ),
    *(f"presence {{ min_count: {number} }}" for number in NUMBERS),
    *(f"shape {{ dim {{ size: {number} }} }}" for number in NUMBERS),
    *(
        f"{field} {{ min: {least} max: {most} }}"
        for field in ("int_domain", "value_count", "unique_constraints")
        for least, most in itertools.product(NUMBERS, NUMBERS)
    ),
]


@pytest.mark.tf
def test_what_tfdv_calls_invalid_is_refused():
    import tensorflow_data_validation as tfdv

    statistics = compute_statistics([encode({"a": [1]})] * 20)
    refused = 0
    for field in FIELDS:
        text = f'feature {{ name: "a" type: INT {field} }}'
        schema = text_format.Parse(text, schema_pb2.Schema())
        found = tfdv.validate_statistics(statistics, schema)
        kinds = {x.type for info in found.anomaly_info.values() for x in info.reason}
        if anomalies_pb2.AnomalyInfo.INVALID_SCHEMA_SPECIFICATION in kinds:
            assert faults(text), text
            refused += 1
    assert refused > 10
