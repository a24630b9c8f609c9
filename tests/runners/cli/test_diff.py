"""``sluice diff``: which runs it compares, and in which form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluice.record.parts import PushRecord
from tests.kit import protos
from tests.kit.runs import a_check, a_gate

pytestmark = pytest.mark.unit

IDS = tuple(f"2026010{day}T000000Z-aaaa" for day in (1, 2, 3))


@pytest.fixture(autouse=True)
def run_dirs(write_run):
    """The first two runs have pushed; the third was blocked."""
    facts: list[dict[str, Any]] = [
        {"pushes": [PushRecord("s", "pushed", 1)]},
        {"pushes": [PushRecord("s", "pushed", 2)]},
        {
            "status": "blocked",
            "gates": [a_gate("model", a_check(result="FAIL"))],
        },
    ]
    return [
        write_run(run_id, _auc(0.9 - day / 10), config={"epochs": day}, **fact)
        for day, (run_id, fact) in enumerate(zip(IDS, facts, strict=True))
    ]


def _auc(value: float) -> dict[str, Any]:
    return {"auc": value, **protos.estimates(10_000, auc=value)}


def _compared(out: str) -> list[str]:
    document = json.loads(out)
    return [document[side]["run_id"] for side in ("before", "after")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), (1, 2)),
        ((IDS[0],), (0, 2)),
        (("last-pushed", "latest"), (1, 2)),
        ((IDS[2][:8], IDS[0][:8]), (2, 0)),
    ],
)
def test_runs_are_named_by_id_or_by_what_they_are(sluice, arguments, expected):
    code, out, _ = sluice("diff", "digits", *arguments, "--json")
    assert code == 0
    assert _compared(out) == [IDS[index] for index in expected]


def test_a_rehearsed_push_is_none(sluice, run_dirs):
    """It went to a folder of the rehearsal."""
    path = run_dirs[1] / "run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "tags": {"rehearsal": ""}}))
    for arguments in ((), ("last-pushed", "latest")):
        _, out, _ = sluice("diff", "digits", *arguments, "--json")
        assert _compared(out) == [IDS[0], IDS[2]]


def test_a_folder_of_a_run_elsewhere(sluice, run_dirs):
    copy = run_dirs[0].parents[3] / "copied"
    run_dirs[0].rename(copy)
    _, out, _ = sluice("diff", "digits", str(copy), "--json")
    assert _compared(out) == [IDS[0], IDS[2]]


def test_runs_that_are_not_there(sluice, run_dirs):
    code, _, err = sluice("diff", "digits", "2025")
    assert code == 2 and "there is no run '2025' of digits" in err
    code, _, err = sluice("diff", "digits", "2026")
    assert code == 2 and "several runs of digits begin with '2026'" in err
    for folder in ("./nowhere", "/etc"):  # Found: an IndexError.
        code, _, err = sluice("diff", "digits", folder, "latest")
        assert code == 2 and f"run {Path(folder).name} cannot be read" in err
    for run_dir in run_dirs[:2]:
        (run_dir / "run.json").unlink()
    code, _, err = sluice("diff", "digits")
    assert code == 2 and f"no run before {IDS[2]} has pushed a model" in err
    code, _, err = sluice("diff", "digits", "last-pushed")
    assert code == 2 and "no run of digits has pushed a model" in err


def test_tables_and_a_summary_in_the_terminal(sluice):
    code, out, _ = sluice("diff", "digits")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert ["epochs", "1", "2"] in lines
    assert ["overall", "auc", "0.8000", "0.7000", "-0.1", "worse"] in lines
    assert lines[1] == "metrics: auc 0.8 → 0.7 (worse)".split()


def test_a_page(sluice, root):
    assert sluice("diff", "digits", "-o", "a.html")[1] == "wrote a.html\n"
    page = (root / "a.html").read_text()
    assert page.startswith("<!doctype html>") and "Content-Security-Policy" in page
