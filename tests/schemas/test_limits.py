"""Invalid schema entries, compared with TFDV's behaviour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from sample_data.tf_example import encode
from schemas import loader
from schemas.loader import invalid_entries
from sluice.errors import ConfigError

REST = """
feature { name: "f" type: FLOAT } feature { name: "s" type: BYTES }
"""


Anomalies = Callable[[str, int], dict[str, set[str]]]


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
            'feature { name: "a" } feature { type: INT }',
            "feature number 2 has no name",
        ),
        (
            'feature { name: "a" presence { min_fraction: nan } }',
            "feature 'a'.presence.min_fraction is NaN; every comparison with NaN is "
            "false",
        ),
        (
            'feature { name: "a" presence { min_fraction: 1.5 } }',
            "feature 'a'.presence.min_fraction is 1.5, not a fraction between 0 and 1",
        ),
        (
            'feature { name: "a" value_counts { value_count { min: 1 }'
            " value_count { min: -1 } } }",
            "feature 'a'.value_counts.value_count number 2.min is -1, less than 0",
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
            "validate.max_count_change in the config",
        ),
        (
            'feature { name: "a" image_domain { max_image_byte_size: 9 } }',
            "feature 'a'.image_domain.max_image_byte_size is not measured: let "
            "examples.images in the config check every image",
        ),
    ],
)
def test_an_entry_that_cannot_work_is_named(text, fault):
    assert faults(text) == [fault]


@pytest.mark.unit
@pytest.mark.parametrize(
    "text",
    [
        'feature { name: "a" int_domain { min: 5 max: 5 } presence { min_count: 1 } }',
        'feature { name: "a" float_domain { min: -inf max: inf } }',
        'feature { name: "a" int_domain { min: 5 } value_count { min: 0 } }',
        'feature { name: "a" domain: "d" distribution_constraints { } }',
        'tensor_representation_group { key: "" value { tensor_representation {'
        ' key: "a" value { dense_tensor { column_name: "a"'
        " default_value { float_value: nan } } } } } }",
    ],
)
def test_an_entry_that_works_is_not(text):
    assert faults(text) == []


@pytest.mark.unit
def test_the_loader_refuses_them_all_at_once(tmp_path):
    path = tmp_path / "schema.pbtxt"
    path.write_text("feature { type: INT }\n" * 7)
    with pytest.raises(ConfigError, match="entries that cannot work") as caught:
        loader.load(path)
    assert caught.value.where == str(path)
    assert caught.value.examples[0] == "feature number 1 has no name"
    assert "and 2 more" in str(caught.value)


@pytest.fixture(scope="module")
def anomalies() -> Anomalies:
    """What TFDV says of a schema and of records with one value of the feature a."""
    import tensorflow_data_validation as tfdv
    from tensorflow_data_validation.statistics import stats_impl
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    statistics: dict[int, Any] = {}

    def anomalies(text: str, value: int) -> dict[str, set[str]]:
        if value not in statistics:
            records = [encode({"a": [value], "f": [1.0], "s": [b"x"]})] * 20
            batch = ExamplesToRecordBatchDecoder().DecodeBatch(records)
            statistics[value] = stats_impl.generate_statistics_in_memory(batch)
        schema = text_format.Parse(text + REST, schema_pb2.Schema())
        found = tfdv.validate_statistics(statistics[value], schema)
        names = anomalies_pb2.AnomalyInfo.Type.Name
        return {
            feature: {names(reason.type) for reason in info.reason}
            for feature, info in found.anomaly_info.items()
        }

    return anomalies


NUMBERS = st.sampled_from([-3, -1, 0, 1, 2, 5])
FRACTIONS = st.sampled_from(["nan", "-inf", "inf", "-0.5", "0", "0.5", "1", "1.5"])


def _entry(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """Texts of a message with some of its fields."""
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda given: (
            f"{name} {{ " + " ".join(f"{k}: {v}" for k, v in given.items()) + " }"
        )
    )


def _field(text: str) -> str:
    name = text.partition(" ")[0]
    return "value_count" if name == "shape" else name  # One excludes the other.


def _feature(head: str, domain: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(
        st.one_of(
            domain,
            _entry("presence", min_fraction=FRACTIONS, min_count=NUMBERS),
            _entry("value_count", min=NUMBERS, max=NUMBERS),
            _entry("distribution_constraints", min_domain_mass=FRACTIONS),
            _entry("unique_constraints", min=NUMBERS, max=NUMBERS),
            NUMBERS.map(lambda n: f"shape {{ dim {{ size: {n} }} }}"),
        ),
        min_size=1,
        max_size=3,
        unique_by=_field,
    ).map(lambda parts: f"feature {{ {head} {' '.join(parts)} }}")


FEATURES = st.one_of(
    _feature('name: "a" type: INT', _entry("int_domain", min=NUMBERS, max=NUMBERS)),
    _feature('name: "s" type: BYTES', st.just('string_domain { value: "x" }')),
)


@pytest.mark.tf
@settings(max_examples=300, deadline=None)
@given(text=FEATURES)
def test_what_tfdv_calls_invalid_is_refused(anomalies, text):
    found = set().union(*anomalies(text, 1).values())
    if "INVALID_SCHEMA_SPECIFICATION" in found:
        assert faults(text), text


@pytest.mark.tf
@pytest.mark.parametrize(
    ("text", "without"),
    [
        (
            'feature { name: "a" type: INT presence { min_fraction: nan } }',
            'feature { name: "a" type: INT }',
        ),
        (
            'feature { name: "a" type: INT drift_comparator {'
            " jensen_shannon_divergence { threshold: nan } } }",
            'feature { name: "a" type: INT }',
        ),
        ("feature { type: INT int_domain { min: 5 } }", ""),
    ],
)
def test_tfdv_passes_over_what_is_refused(anomalies, text, without):
    assert faults(text)
    assert anomalies(text, 1) == anomalies(without, 1)


@pytest.mark.tf
@pytest.mark.parametrize("value", [0, 1, 3, 5, 9])
def test_no_value_is_in_a_domain_that_is_refused(anomalies, value):
    text = 'feature { name: "a" type: INT int_domain { min: 5 max: 1 } }'
    assert faults(text)
    assert anomalies(text, value).keys() == {"a"}
