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
    baseline=None,
    actual=9,
    passed=False,
    why="the split 'train' holds 9 examples. ",
    severity="fail",
    policy="validate.default: fail",
    comparison=">=",
    remedy="correct the schema",
    command="schema diff",
)


def _error(*rows: Check) -> DataError:
    with pytest.raises(DataError) as failure:
        stop_unless_passed(Verdict("data", rows), "taxi")
    assert failure.value.exit_code == ExitCode.DATA
    return failure.value


def test_a_line_has_check_place_reason_and_policy():
    words = replace(ROW, slice="serving", limit="measured", comparison=None)
    assert _error(ROW, words, replace(words, slice="overall", why="")).examples == (
        "number of examples, split train: the split 'train' holds 9 examples; "
        "expected >= 100 (validate.default: fail)",
        "number of examples, serving examples: the split 'train' holds 9 examples "
        "(validate.default: fail)",
        "number of examples, all splits: found 9 (validate.default: fail)",
    )


def test_what_to_do_is_said_once_and_names_the_pipeline():
    text = str(_error(*[ROW] * 30))
    assert "30 checks failed" in text and "and 25 more" in text
    assert text.count("correct the schema: `sluice schema diff taxi`") == 1
    assert "Or override the gate once" in text
