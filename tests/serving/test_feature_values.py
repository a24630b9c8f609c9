"""Conversion of JSON values to feature values."""

import math

import pytest

from serving.feature_values import FeatureType, to_feature_values
from sluice.errors import DataError

pytestmark = pytest.mark.unit

FEATURES = {
    "miles": FeatureType("float32"),
    "riders": FeatureType("int64"),
    "payment": FeatureType("string"),
}
VECTORS = {
    "place": FeatureType("float32", (2,)),
    "grid": FeatureType("int64", (2, 3)),
    "tags": FeatureType("string", (None,)),
}


def values(**row):
    return to_feature_values(row, FEATURES, where="in.jsonl, line 7")


def test_values_keep_their_type():
    assert values(miles=2, riders=3, payment="Cash") == {
        "miles": 2.0,
        "riders": 3,
        "payment": b"Cash",
    }
    assert isinstance(values(miles=2)["miles"], float)


@pytest.mark.parametrize(
    "row",
    [{}, dict.fromkeys(FEATURES), dict.fromkeys(FEATURES, math.nan)],
    ids=["absent", "null", "nan"],
)
def test_missing_values(row):
    found = values(**row)

    assert math.isnan(found.pop("miles"))
    assert found == {"riders": -(2**63), "payment": b""}


def test_text_is_utf8_and_bytes_come_in_base64():
    assert values(payment="Zürich")["payment"] == "Zürich".encode()
    assert values(payment={"b64": "iVBO"})["payment"] == b"\x89PN"


def test_whole_float_is_an_integer():
    assert values(riders=3.0)["riders"] == 3


@pytest.mark.parametrize(
    ("row", "expected", "actual"),
    [
        ({"miles": "2"}, "a number", '"2" (string)'),
        ({"miles": True}, "a number", "true (boolean)"),
        ({"miles": 1e39}, "32 bits", "1e+39 (number)"),
        ({"miles": math.inf}, "32 bits", "Infinity (number)"),
        ({"miles": [1]}, "a number", "[1] (array)"),
        ({"riders": 2.5}, "an integer", "2.5 (number)"),
        ({"riders": "3"}, "an integer", '"3" (string)'),
        ({"riders": False}, "an integer", "false (boolean)"),
        ({"riders": 2**63}, "64 bits", "9223372036854775808 (number)"),
        ({"riders": -(2**63)}, "64 bits", "-9223372036854775808 (number)"),
        ({"riders": 2.0**60}, "an integer", "1.152921504606847e+18 (number)"),
        ({"payment": 3}, "a string", "3 (number)"),
        ({"payment": {"b64": "%"}}, "a string", '{"b64": "%"} (object)'),
        ({"payment": {"b64": 3}}, "a string", '{"b64": 3} (object)'),
        ({"payment": {"text": "x"}}, "a string", '{"text": "x"} (object)'),
        ({"payment": "\ud800"}, "a string", '"\\ud800" (string)'),
    ],
)
def test_wrong_type_is_refused(row, expected, actual):
    with pytest.raises(DataError, match="wrong type") as caught:
        values(**row)

    assert repr(next(iter(row))) in caught.value.what
    assert caught.value.where == "in.jsonl, line 7"
    assert expected in str(caught.value.expected)
    assert caught.value.actual == actual


def test_unknown_feature_names_the_nearest():
    with pytest.raises(DataError, match="no feature 'payments'") as caught:
        values(payments="Cash")

    assert caught.value.where == "in.jsonl, line 7"
    assert caught.value.hint == "did you mean 'payment'?"
    assert "payment (string)" in str(caught.value.expected)


def test_unknown_feature_without_a_near_one():
    with pytest.raises(DataError, match="no feature 'zzz'") as caught:
        values(zzz=1)

    assert caught.value.hint is None


def vectors(**row):
    whole = {"place": [1, 2.5], "grid": [[1, 2, 3], [4, 5, 6]], "tags": ["a"]}
    return to_feature_values({**whole, **row}, VECTORS, where="in.jsonl, line 7")


def test_a_vector_is_a_list():
    assert vectors() == {
        "place": [1.0, 2.5],
        "grid": [[1, 2, 3], [4, 5, 6]],
        "tags": [b"a"],
    }
    assert vectors(tags=[])["tags"] == vectors(tags=None)["tags"] == []
    assert vectors(tags=["b", {"b64": "iVBO"}])["tags"] == [b"b", b"\x89PN"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"place": 1.5}, "a list of 2, each a number that fits in 32 bits"),
        ({"place": None}, "a list of 2, each a number"),
        ({"place": [1]}, "a list of 2"),
        ({"place": [1, 2, 3]}, "a list of 2"),
        ({"place": [1, "2"]}, "each a number"),
        ({"place": [1, None]}, "each a number"),
        ({"place": [1, math.nan]}, "each a number"),
        ({"grid": [1, 2, 3]}, "a list of 2 lists of 3, each an integer"),
        ({"grid": [[1, 2, 3], [4, 5]]}, "a list of 2 lists of 3, each an integer"),
        ({"tags": "a"}, "a list of any number, each a string"),
        ({"tags": ["a", 1]}, "a list of any number, each a string"),
        ({"tags": ["a", ""]}, "that is not empty"),
    ],
)
def test_a_vector_of_another_shape_or_type_is_refused(row, expected):
    with pytest.raises(DataError, match="wrong type") as caught:
        vectors(**row)

    assert expected in (caught.value.expected or "")


def test_shapes_in_messages():
    with pytest.raises(DataError, match="no feature 'plcae'") as caught:
        vectors(plcae=[1, 2])

    assert caught.value.expected == (
        "place (float32[2]), grid (int64[2 x 3]), tags (string[any number])"
    )
