"""The error message of the data gate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.data_gate import stop_unless_passed
from sluice.errors import DataError, ExitCode
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

ROW = Check(
    check="number of examples",
    slice="train",
    limit=100,
    actual=9,
    result="FAIL",
    why="the split 'train' holds 9 examples, limit >= 100. ",
    policy="validate.default: fail",
    comparison=">=",
    remedy="correct the schema",
    command="schema diff",
)
FARE = replace(
    ROW,
    check="feature 'fare'",
    feature="fare",
    kind="out_of_range",
    why="Unexpectedly large value: 7.",
    examples=("/data/train-0.gz, record 5: fare 7", "/data/train-1.gz, record 6"),
)


def _error(*rows: Check) -> DataError:
    with pytest.raises(DataError) as failure:
        stop_unless_passed(Verdict("data", rows), "taxi")
    assert failure.value.exit_code == ExitCode.DATA
    return failure.value


def test_a_cause_is_one_line_with_its_reason_and_place():
    assert _error(ROW, FARE, replace(FARE, slice="eval")).examples == (
        "the split 'train' holds 9 examples, limit >= 100",
        "feature 'fare' in train, eval: unexpectedly large value: 7; first at "
        "train-0.gz, record 5: fare 7",
    )
