"""Kinds of anomalies, and the policy's rules for them."""

from __future__ import annotations

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2

from components.data_verdict.anomaly_kind import COMPARISONS, KINDS, anomaly_kind
from components.data_verdict.policy import Policy, Rule, Ruling

pytestmark = pytest.mark.unit

TYPE = anomalies_pb2.AnomalyInfo.Type
POLICY = Policy(
    default="warn",
    rules=(
        Rule(action="ignore", feature="fare"),
        Rule(action="fail", anomaly="new_value"),
        Rule(action="warn", feature="fare", anomaly="drift"),
        Rule(action="fail", feature="tip"),
    ),
    min_examples={"train": 100},
    max_count_change=0.5,
)


def test_every_type_of_tfdv_has_a_kind():
    unnamed = {"UNKNOWN_TYPE", "MULTIPLE_REASONS"}
    kinds = {name: anomaly_kind(number) for name, number in TYPE.items()}
    assert set(kinds.values()) <= set(KINDS)
    assert {name for name, kind in kinds.items() if kind == "other"} == unnamed


def test_a_type_of_a_newer_tfdv_is_other():
    assert anomaly_kind(9999) == "other"
    assert set(COMPARISONS) <= set(KINDS)


@pytest.mark.parametrize(
    ("kind", "feature", "action", "line"),
    [
        ("missing", "company", "warn", "validate.default: warn"),
        ("missing", "fare", "ignore", "validate.rules[0]: ignore"),
        ("new_value", "fare", "fail", "validate.rules[1]: fail"),
        ("drift", "fare", "warn", "validate.rules[2]: warn"),
        ("drift", "tip", "fail", "validate.rules[3]: fail"),
        ("new_value", None, "fail", "validate.rules[1]: fail"),
        ("count", None, "warn", "validate.default: warn"),
    ],
)
def test_the_last_rule_that_matches_applies(kind, feature, action, line):
    assert POLICY.ruling(kind, feature) == Ruling(action, line)


def test_json_round_trip():
    assert Policy.from_json(POLICY.to_json()) == POLICY
    assert Policy.from_json(Policy().to_json()) == Policy()
