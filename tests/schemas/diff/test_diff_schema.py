"""Differences between a schema and data, and accepting them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.summarize import observe_summary, summarize
from sample_data.tf_example import encode
from schemas.diff.change import Change
from schemas.diff.diff_schema import Diff, Expectations, diff_schema
from schemas.edit.edit_schema import edit_schema

pytestmark = pytest.mark.unit

Record = dict[str, list[Any]]


def _diff(
    text: str,
    splits: dict[str, list[Record]],
    sensitive: tuple[str, ...] = (),
    required: dict[str, str] | None = None,
) -> Diff:
    schema = text_format.Parse(text, schema_pb2.Schema())
    summaries = {
        split: summarize(map(_record, records)) for split, records in splits.items()
    }
    expected = Expectations(sensitive, required or {})
    return diff_schema(schema, observe_summary(summaries), expected)


def _record(features: Record) -> bytes:
    return encode(
        {
            name: [item.encode() if isinstance(item, str) else item for item in values]
            for name, values in features.items()
        }
    )


def _only(diff: Diff) -> Change:
    (change,) = diff.changes
    return change


def _repeat(count: int, **features: list) -> list[Record]:
    return [features] * count


PAYMENT = """
    # How it was paid.
    feature { name: "payment" type: BYTES domain: "payment" }
    string_domain { name: "payment" value: "Cash" value: "Card" }
"""
NUMBER = 'feature {{ name: "x" type: {} {} presence {{ min_fraction: 1 }} }}'


def test_data_that_fits_has_no_difference():
    text = PAYMENT + NUMBER.format("FLOAT", "float_domain { min: 0 max: 42.1 }")
    records = _repeat(3, payment=["Cash"], x=[42.1])
    assert _diff(text, {"train": records}) == Diff(())


def test_new_values_are_listed_most_frequent_first_and_bounded():
    records = _repeat(2989, payment=["Cash"]) + _repeat(1, payment=["Cheque"])
    records += _repeat(10, payment=["Apple Pay"])
    change = _only(_diff(PAYMENT, {"train": records}))
    assert change.id == "payment.new_value"
    assert change.text == (
        'new values "Apple Pay" (10 records, 0.3 %), '
        '"Cheque" (1 record, less than 0.1 %)'
    )
    many = [{"payment": [f"v{number}"]} for number in range(8)]
    assert _only(_diff(PAYMENT, {"train": many})).text.endswith(", and 3 more")


def test_a_sensitive_feature_shows_counts_and_is_not_accepted():
    text = PAYMENT + NUMBER.format("INT", "int_domain { min: 0 max: 5 }")
    records = _repeat(9, payment=["Cash"], x=[1])
    records += _repeat(1, payment=["Secret"], x=[987654])
    diff = _diff(text, {"train": records}, sensitive=("payment", "x"))
    assert [change.text for change in diff.changes] == [
        "1 new value (1 record, 10 %)",
        "values outside the schema's range",
    ]
    for change in diff.changes:
        assert change.refusal and "sensitive" in change.refusal
        shown = str(change.to_dict())
        assert "Secret" not in shown and "987654" not in shown


@pytest.mark.parametrize(
    ("domain", "values", "text"),
    [
        (
            "float_domain { min: 0 max: 300 }",
            [-3.0, 400.0],
            "-3.0 .. 400.0, the schema allows 0.0 .. 300.0",
        ),
        (
            "float_domain { max: 42.1 }",
            [1.0, 42.2],
            "1.0 .. 42.2, the schema allows .. 42.1",
        ),
        ("int_domain { min: 0 }", [-1, 7], "-1 .. 7, the schema allows 0 .."),
        ("bool_domain {}", [0, 2], "0 .. 2, the schema allows 0 .. 1"),
    ],
)
def test_out_of_range(domain, values, text):
    kind = "FLOAT" if isinstance(values[0], float) else "INT"
    records = [{"x": [value]} for value in values]
    change = _only(_diff(NUMBER.format(kind, domain), {"train": records}))
    assert change.id == "x.out_of_range"
    assert change.text == f"values are {text}"
    assert (change.refusal is None) == ("bool" not in domain)


def test_the_required_presence_is_sufficient():
    # 0.55 * 100 is 55.00000000000001.
    text = 'feature { name: "y" type: INT presence { min_fraction: 0.55 } }'
    assert not _diff(text, {"train": _repeat(55, y=[1]) + [{}] * 45}).changes
    assert _diff(text, {"train": _repeat(54, y=[1]) + [{}] * 46}).changes


def test_presence_is_that_of_the_worst_split():
    text = 'feature { name: "tip" type: INT presence { min_fraction: 0.9 } }'
    other: Record = {"x": [1]}
    splits = {
        "train": _repeat(10, tip=[1]),
        "eval": _repeat(83, tip=[1]) + [{}] * 17,
        "empty": [],
    }
    change = _only(_diff(text, splits))
    assert change.text == (
        "present in 83 % of records of split eval, the schema requires 90 %"
    )
    near = {"train": _repeat(8999, tip=[1]) + [{}] * 1001}
    assert "present in 89.9 % of records, " in _only(_diff(text, near)).text
    gone = _diff(text, {"train": [other]}).changes[0]
    assert gone.id == "tip.missing"
    assert gone.text == "in the schema, not in the data"


def test_a_label_or_an_image_cannot_be_accepted_as_missing():
    text = 'feature { name: "y" type: INT presence { min_count: 1 } }'
    required = {"y": "it is the label"}
    (change,) = _diff(text, {"train": [{}]}, required=required).changes
    assert change.refusal == "it may not be missing: it is the label"
    assert change.edits == ()


@pytest.mark.parametrize(
    "text",
    [
        'feature { name: "y" presence { min_count: 1 } '
        'not_in_environment: "TRAINING" }',
        'feature { name: "y" presence { min_count: 1 } lifecycle_stage: DEPRECATED }',
        'feature { name: "y" presence { min_count: 1 } deprecated: true }',
        'feature { name: "y" presence { min_fraction: 0 } }',
    ],
)
def test_a_feature_not_expected_in_training(text):
    assert _diff(text, {"train": [{}]}).changes == ()


@pytest.mark.parametrize(
    "environments",
    [
        'in_environment: "SERVING"',
        'in_environment: "TRAINING" not_in_environment: "TRAINING"',
    ],
)
def test_a_feature_expected_in_training(environments):
    text = f'feature {{ name: "y" presence {{ min_count: 1 }} {environments} }}'
    assert _only(_diff(text, {"train": [{}]})).id == "y.missing"


def test_a_new_feature_says_its_type_and_how_many_values():
    records: list[Record] = [
        {"user_id": [f"u{number}"], "n": [number]} for number in range(1200)
    ]
    diff = _diff("", {"train": records}, sensitive=("n",))
    assert [(change.feature, change.text) for change in diff.changes] == [
        ("n", "not in the schema (INT)"),
        ("user_id", "not in the schema (BYTES, 1,200 values)"),
    ]


def test_another_type():
    text = 'feature { name: "x" type: INT }'
    change = _only(_diff(text, {"train": _repeat(2, x=["a"])}))
    assert (change.id, change.text) == (
        "x.wrong_type",
        "BYTES in the data, INT in the schema",
    )
    records: list[Record] = [{"x": [1]}, {"x": [1.5]}]
    mixed = _only(_diff(text, {"train": records}))
    assert (
        mixed.text
        == "INT in 1 record, FLOAT in 1 record in the data, INT in the schema"
    )
    assert mixed.refusal == "a feature has one type, so the data must be corrected"
    text = 'feature { name: "x" type: INT int_domain { min: 0 } }'
    change = _only(_diff(text, {"train": _repeat(2, x=["a"])}))
    assert (
        change.refusal == "its int_domain does not fit BYTES; edit the schema by hand"
    )


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("shape { dim { size: 1 } }", "1 .. 3 values per record, the schema requires "
        "1"),
        ("shape { dim { size: 2 } dim { size: 2 } }", "1 .. 3 values per record, the "
         "schema requires 4"),
        ("value_count { min: 2 max: 2 }", "1 .. 3 values per record, the schema "
         "requires 2"),
    ],
)  # fmt: skip
def test_another_shape(shape, text):
    records: list[Record] = [{"x": [1]}, {"x": [1, 2, 3]}]
    change = _only(_diff(NUMBER.format("INT", shape), {"train": records}))
    assert (change.id, change.text) == ("x.wrong_shape", text)


def test_nan_and_infinities_are_reported_and_never_accepted():
    records: list[Record] = [{"x": [float("nan")]}, {"x": [float("inf")]}, {"x": [1.0]}]
    change = _only(_diff(NUMBER.format("FLOAT", ""), {"train": records}))
    assert change.text == "1 value is not a number (NaN), some values are infinite"
    assert change.refusal and "validate.rules" in change.refusal


def test_bytes_that_are_not_text_and_values_that_are_not_counted():
    records: list[Record] = [{"payment": [b"\xff"]}, {"payment": ["x" * 300]}]
    diff = _diff(PAYMENT, {"train": records})
    assert _only(diff).id == "payment.invalid_text"
    assert diff.notes == ("payment: 1 value is too rare or too long to be compared",)


def test_a_domain_mass_allows_some_new_values():
    text = PAYMENT.replace(
        'domain: "payment"',
        'domain: "payment" distribution_constraints { min_domain_mass: 0.9 }',
        1,
    )
    records = _repeat(9, payment=["Cash"])
    assert not _diff(text, {"train": records + _repeat(1, payment=["New"])}).changes
    assert _diff(text, {"train": records + _repeat(2, payment=["New"])}).changes


def test_without_records_there_is_no_difference():
    assert _diff(PAYMENT, {"train": []}) == Diff((), ("there is no record",))


EVERYTHING = """\
default_environment: "TRAINING"  # and serving

feature {  # { the label
  name: "y"
  type: INT
  not_in_environment: "SERVING"
  int_domain { min: 0 max: 1 is_categorical: true }
}
feature {
  name: "payment"; type: BYTES
  shape { dim { size: 1 } }
  presence { min_fraction: 1.0 min_count: 1 }
  domain: "payment"
  drift_comparator { jensen_shannon_divergence { threshold: 0.1 } }
}
string_domain {
  name: "payment"
  value: "Cash"  # "}"
}
feature { name: "x" type: FLOAT shape { dim { size: 1 } }
  float_domain { min: 0 max: 1 } }
feature { name: "gone" type: INT presence { min_fraction: 0.5 min_count: 1 } }
feature { name: "image" type: BYTES image_domain {} }
"""


def test_accepted_changes_are_no_differences_any_more():
    records: list[Record] = [
        {"y": [2], "payment": ["Überweisung"], "x": [-1.0], "new": ["a", "b"]},
        {"y": [1], "x": [5.0, 6.0], "image": [b"\xff"]},
    ]
    changes = _diff(EVERYTHING, {"train": records}).changes
    assert [change.id for change in changes] == [
        "y.out_of_range",
        "payment.missing",
        "payment.new_value",
        "x.wrong_shape",
        "x.out_of_range",
        "gone.missing",
        "new.new_feature",
    ]
    edits = [edit for change in changes for edit in change.edits]
    edited = edit_schema(EVERYTHING, edits, "x")
    assert _diff(edited, {"train": records}) == Diff(())
    after = text_format.Parse(edited, schema_pb2.Schema())
    features = {feature.name: feature for feature in after.feature}
    payment = features["payment"].drift_comparator.jensen_shannon_divergence
    assert payment.threshold == 0.1
    assert list(features["y"].not_in_environment) == ["SERVING"]
    assert features["image"].HasField("image_domain")
    for comment in ("# and serving", "# { the label", '# "}"'):
        assert comment in edited


def test_some_of_the_new_values():
    records = _repeat(1, payment=["Csah"]) + _repeat(2, payment=["Apple Pay"])
    change = _only(_diff(PAYMENT, {"train": records})).only(("Apple Pay",))
    edited = edit_schema(PAYMENT, change.edits, "x")
    assert 'value: "Card" value: "Apple Pay"' in edited
    assert "Csah" not in edited
    assert change.text == 'new value "Apple Pay" (2 records, 66.6 %)'
    assert change.values == {"Apple Pay": 2}
