"""Kinds of anomalies, and the policy's rules for them."""

from __future__ import annotations

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2

from components.data_verdict.schema_rows import anomaly_kind
from components.data_verdict.settings import KINDS, Policy, Rule

pytestmark = pytest.mark.unit

POLICY = Policy(
    default="warn",
    rules=(
        Rule(action="ignore", feature="fare"),
        Rule(action="fail", anomaly="new_value"),
        Rule(action="warn", feature="fare", anomaly="drift"),
        Rule(action="fail", feature="tip"),
    ),
)


def test_a_leak_stops_a_run_only_by_a_rule():
    assert Policy().ruling("leak")[0] == "warn"
    strict = Policy(rules=(Rule(action="fail", anomaly="leak"),))
    assert strict.ruling("leak")[0] == "fail"


def test_types_of_tfdv_have_a_kind():
    types = anomalies_pb2.AnomalyInfo.Type
    assert {anomaly_kind(number) for number in types.values()} <= set(KINDS)
    assert anomaly_kind(types.Value("ENUM_TYPE_UNEXPECTED_STRING_VALUES")) == (
        "new_value"
    )
    assert anomaly_kind(9999) == "other"


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
    assert POLICY.ruling(kind, feature) == (action, line)
