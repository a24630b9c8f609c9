"""``sluice explain``: the reasons that it prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runners.operations import explain as operation

pytestmark = pytest.mark.unit


@pytest.fixture
def explain(
    sluice: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[str]], list[str]]:
    """Returns the lines that are printed for a node's reasons."""

    def explain(because: list[str], resumes: str | None = None) -> list[str]:
        node = {"node": "TFRecordGen", "would_run": True, "because": because}
        node |= {"waits_for": [], "last_run": None, "resumes": resumes}
        found = operation.Explanation("trips", "TFRecordGen", [node])
        monkeypatch.setattr(operation, "explain", lambda request: found)
        code, out, _ = sluice("explain", "trips", "TFRecordGen")
        assert code == 0
        return out.splitlines()[1:]

    return explain


def test_many_files_with_one_change_are_one_line(explain: Any) -> None:
    gone = [f"file span-1/{i}: is gone, or no longer selected" for i in range(40)]
    new = [f"file span-2/{i}: is new" for i in range(4)]
    code = [f"code: app.module_{i} changed" for i in range(5)]
    assert explain(["spans: 1 -> 2", *gone, *new, *code, "property a: 1 -> 2"]) == [
        "  spans: 1 -> 2",
        "  40 files gone, or no longer selected: span-1/0, span-1/1, span-1/2, "
        "and 37 more",
        "  4 files new: span-2/0, span-2/1, span-2/2, and 1 more",
        "  5 modules changed: app.module_0, app.module_1, app.module_2, and 2 more",
        "  property a: 1 -> 2",
    ]


def test_a_few_files_have_a_line_each(explain: Any) -> None:
    lines = ["file a: is new", "file b: content changed", "code: app is new"]
    assert explain(lines) == [f"  {line}" for line in lines]


def test_reasons_are_bounded(explain: Any) -> None:
    shown = explain([f"property p{i}: 1 -> 2" for i in range(30)])
    assert len(shown) == 13 and shown[-1] == "  and 18 more"


def test_a_training_that_would_resume(explain: Any) -> None:
    resumes = "training resumes with epoch 3 of 10"
    shown = explain(["it has not finished before"], resumes)
    assert shown == ["  it has not finished before", f"  from a checkpoint: {resumes}"]
