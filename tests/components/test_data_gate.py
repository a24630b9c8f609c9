"""The error message of the data gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.data_gate.executor import stop_unless_passed
from components.data_verdict.anomaly_kind import SCHEMA_KINDS
from sluice.errors import DataError, ExitCode
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit


def _message(**fields: Any) -> str:
    known: dict[str, Any] = {
        "check": "number of examples",
        "slice": "train",
        "limit": 100,
        "comparison": ">=",
        "baseline": None,
        "actual": 9,
        "passed": False,
        "why": "the split 'train' holds 9 examples",
        "severity": "fail",
        "policy": "validate.default: fail",
    }
    with pytest.raises(DataError) as failure:
        stop_unless_passed(Verdict("data", (Check(**(known | fields)),)), "taxi")
    assert failure.value.exit_code == ExitCode.DATA
    (line,) = failure.value.examples
    return line


def test_the_message_has_the_expected_value():
    assert _message() == (
        "number of examples, split train: the split 'train' holds 9 examples; "
        "expected >= 100 (validate.default: fail)"
    )


def test_serving_examples_are_named_as_such():
    assert "number of examples, serving examples: " in _message(slice="serving")
    assert "number of examples, all splits: " in _message(slice="overall")


def test_a_trivial_limit_is_left_out():
    for limit in ("measured", None):
        assert "expected" not in _message(limit=limit, comparison=None)


def test_a_final_period_is_dropped_before_the_expected_value():
    assert ": too large: 7; expected 0 to 1 (" in _message(
        why="too large: 7. ", limit="0 to 1", comparison=None
    )


def test_at_most_five_failures_are_listed():
    row = Check("drift", "train", None, None, None, False, "too far", "fail")
    with pytest.raises(DataError) as failure:
        stop_unless_passed(Verdict("data", (row,) * 30), "taxi")
    assert "30 checks failed" in str(failure.value)
    assert "and 25 more" in str(failure.value)


def test_the_hint_names_the_pipeline_of_a_schema_difference():
    (kind, *_) = SCHEMA_KINDS
    row = Check("x", "train", None, None, None, False, "new", "fail", kind=kind)
    row = replace(row, remedy="correct the schema", command="schema diff")
    with pytest.raises(
        DataError, match="correct the schema: `sluice schema diff taxi`"
    ):
        stop_unless_passed(Verdict("data", (row,)), "taxi")
