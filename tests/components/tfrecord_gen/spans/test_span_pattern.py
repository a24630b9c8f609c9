"""File patterns with placeholders and wildcards."""

from __future__ import annotations

import pytest

from components.tfrecord_gen.spans.span_pattern import (
    SpanPattern,
    span_date,
    span_number,
)
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("pattern", "name", "digits"),
    [
        ("span-{SPAN}", "span-007", {"SPAN": "007"}),
        ("span-{SPAN}", "span-backup", None),
        ("span-{SPAN:2}", "span-07", {"SPAN": "07"}),
        ("span-{SPAN:2}", "span-007", None),
        ("{YYYY}{MM}{DD}", "20240131", {"YYYY": "2024", "MM": "01", "DD": "31"}),
        ("{YYYY}{MM}{DD}", "20240131.tmp", None),
        ("v{VERSION}", "v12", {"VERSION": "12"}),
        ("train-*", "train-", {}),
        ("train-*", "Train-1", None),
        ("a.b?", "axb1", None),
        ("part-[0-9]", "part-3", {}),
        ("part-[!0-9]", "part-3", None),
        ("part-[ab", "part-[ab", {}),
        ("*", ".train-1.k2jd", None),
        ("*", "_SUCCESS", None),
        ("_*", "_train", {}),
        ("*", "manifest.json", None),
        ("*.json", "manifest.json", None),
        ("* donn\u00e9es*", "les donn\u00e9es (1)", {}),
    ],
)
def test_a_segment_matches(pattern, name, digits):
    prefix = "{SPAN}/" if "VERSION" in pattern else ""
    assert SpanPattern.parse(prefix + pattern).segments[-1].match(name) == digits


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{SPAN}/{SPAN}/x", "each placeholder once"),
        ("{SPAN}-{SPAN}/x", "each placeholder once"),
        ("{YYYY}/{MM}/x", "all of {YYYY}, {MM} and {DD}"),
        ("{YYYY}{MM}{DD}/{SPAN}", "either {SPAN}, or"),
        ("v{VERSION}/x", "together with {VERSION}"),
        ("{HH}/x", r"{SPAN}, {SPAN:2}.*\n.*{HH}"),
        ("{SPAN:0}/x", r"{SPAN}, {SPAN:2}.*\n.*{SPAN:0}"),
        ("{YYYY:4}{MM}{DD}/x", "{YYYY:4}"),
        ("x{/y", "{SPAN}, {SPAN:2}"),
        ("[z-a]", "a set of characters"),
        ("**/train-*", r"\* for the names in one folder"),
        ("train**", r"\* for the names in one folder"),
        ("/data/x", "a path of files"),
        ("gs://b/x", "a path of files"),
        ("span-{SPAN}/", "a path of files"),
        ("", "a path of files"),
    ],
)
def test_an_invalid_pattern_is_rejected(pattern, expected):
    with pytest.raises(ConfigError, match=expected):
        SpanPattern.parse(pattern)


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("span-{SPAN}/train-*", 1),
        ("{YYYY}/{MM}/{DD}/v{VERSION}/deep/*", 4),
        ("train-{SPAN}-*", 1),
        ("a/b/train-*", 2),
        ("a/*/b/train-*", 1),
        ("train", 0),
    ],
)
def test_the_place_of_a_span_ends_with_its_last_placeholder(pattern, length):
    assert SpanPattern.parse(pattern).location_length == length


def test_a_date_is_a_number_of_days_as_in_tfx():
    digits = {"YYYY": "2024", "MM": "02", "DD": "29"}
    assert span_number(digits) == 19_782
    assert span_date(19_782).isoformat() == "2024-02-29"
    with pytest.raises(ValueError, match="day is out of range"):
        span_number(digits | {"YYYY": "2023"})
