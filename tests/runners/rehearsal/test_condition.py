"""Trigger conditions: the subset of CEL that TFX compiles, and nothing else."""

from __future__ import annotations

import pytest

from runners.rehearsal.condition import ConditionError, holds

pytestmark = pytest.mark.unit

INPUTS = {
    "artifacts": {
        "blessing": {
            "artifacts": [
                {
                    "uri": "gs://b/x",
                    "metadata": {"blessed": 1, "why": "a && 'b'", "is_new": True},
                }
            ]
        },
        "none": {"artifacts": []},
    }
}
_OF = "inputs.artifacts['blessing'].artifacts[0]"
_BLESSED = f"{_OF}.metadata['blessed']"
_MISSING = f"{_OF}.metadata['missing']"
_ABSENT = "inputs.artifacts['none'].artifacts[0].uri"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"({_BLESSED} == 1.0)", True),
        (f"({_BLESSED} < 1.0)", False),
        (f"!(({_BLESSED} > 0.5))", False),
        (f"(({_BLESSED} == 1.0) && ({_OF}.uri == 'gs://b/x'))", True),
        (f"({_BLESSED} == 0.0) && (1.0 == 1.0) || ({_BLESSED} == 1.0)", True),
        (f"({_OF}.uri == ('gs://' + 'b' + '/x'))", True),
        (f"""({_OF}.metadata['why'] == "a && 'b'")""", True),
        (f"{_OF}.metadata['is_new']", True),
        ("-1.5e1 < 0", True),
        # An error does not matter where the other side decides.
        (f"({_MISSING} == 1.0) || ({_BLESSED} == 1.0)", True),
        (f"({_BLESSED} == 0.0) && ({_ABSENT} == 'x')", False),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    assert holds(condition, INPUTS) is expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (f"({_MISSING} == 1.0)", "'missing' does not exist"),
        (f"({_ABSENT} == 'x')", "0 does not exist"),
        (f"({_BLESSED} == '1')", "1.0 cannot be compared with '1'"),
        (f"({_MISSING} == 1.0) && (1.0 == 1.0)", "'missing' does not exist"),
        (_BLESSED, "its value is 1.0"),
        ("size(inputs) > 0", "Call in 'size.* is not understood"),
        ("other > 0", "'other' is unknown; only 'inputs' is"),
        (f"{_OF}.uri.startsWith('gs')", "Call in .* is not understood"),
        ("inputs.artifacts.all(x, true)", "is not understood"),
        ("1.0 == 1.0 ? true : false", "is not understood"),
        ("(1.0 == 1.0", "is not understood: '\\(' was never closed"),
        ("", "'' is not understood"),
        ("1.0 + 'a' == 'a'", "cannot be added"),
        ("!1.0", "! does not take 1.0"),
        ("1.0 && true", "&& and [|]{2} do not take 1.0"),
        ("1.0 == 1.0 == 1.0", "Compare in .* is not understood"),
        ("1.0 == 1.0 and true", "'and' is not understood"),
        ("true # or", "'#' is not understood"),
        ("f'{inputs}' == 'a'", "JoinedStr in .* is not understood"),
        ("-'a' == 'a'", "- does not take 'a'"),
        ("'a\\'b' == 'a'", "is not understood"),
    ],
)
def test_refused(condition: str, message: str) -> None:
    with pytest.raises(ConditionError, match=message):
        holds(condition, INPUTS)
