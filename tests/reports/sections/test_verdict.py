"""The section Verdict: one sentence, the row that decided, what to do next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reports.read_run import RunData, read_run
from reports.run_page import render_run
from reports.sections.verdict import build
from sluice.record.parts import ErrorRecord, NodeRecord, PushRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]
BLOCKED = [PushRecord("/serving", "blocked")]
NOT_REACHED = [PushRecord("/serving", "not_reached")]
GATE_MESSAGE = """\
the data gate has not passed: 1 check failed; nothing was trained
  - damaged records, all splits
"""


def check(name: str, actual: float, limit: str, passed: bool = True) -> Check:
    comparison, number = limit.split()
    return Check(
        *(name, "overall", float(number), None, actual, passed), comparison=comparison
    )


def gate(name: str, *rows: Check, override: str | None = None) -> dict[str, Any]:
    return Verdict(name, rows, override).to_dict()


def test_pushed(run_with):
    rows = (check("accuracy", 0.98, ">= 0.97"), check("loss", 0.2, "<= 0.5"))
    view = build(run_with(gates=[gate("data"), gate("model", *rows)]))
    assert view.tone == "good"
    assert view.headline == "Version 3 was pushed: data and model gates passed"
    assert view.decisive == ["Closest to its limit: accuracy is 0.9800, limit ≥ 0.97"]
    assert view.steps == [] and view.error is None


def test_blocked_by_the_model_gate(run_with):
    rows = [check(f"m{i}", 0.5, ">= 0.9", passed=False) for i in range(7)]
    run = run_with(
        status="blocked",
        exit_code=4,
        pushes=BLOCKED,
        gates=[gate("model", check("ok", 1.0, ">= 0"), *rows)],
    )
    view = build(run)
    assert view.tone == "bad"
    assert view.headline == "Not pushed: the model gate stopped the run"
    assert view.decisive[0] == "m0 is 0.5000, limit ≥ 0.9"
    assert view.decisive[5:] == ["and 2 more"]
    (step,) = view.steps
    assert step.command == "sluice run digits"
    (model,) = view.gates
    assert str(model.checks.rows[0][0]) == "fail" and str(model.checks.rows[-1][0]) == (
        "pass"
    )


def test_blocked_by_the_data_gate(run_with):
    row = check("damaged records", 3, "<= 0", passed=False)
    row = replace(row, remedy="write or copy the files again")
    run = run_with(
        status="blocked",
        pushes=NOT_REACHED,
        gates=[gate("data", row)],
        error=ErrorRecord("DataGate", GATE_MESSAGE, None),
    )
    view = build(run)
    assert view.headline == "Not pushed: the data gate stopped the run"
    assert view.error is None
    assert [(step.text, step.command) for step in view.steps] == [
        ("Write or copy the files again", None),
        (
            "Or override the gate once, with a reason that is recorded",
            "sluice run digits --accept-data 'REASON'",
        ),
    ]


def test_an_anomaly_leads_to_the_schema(run_with):
    row = check("feature 'label'", 11, "<= 9", passed=False)
    row = replace(row, remedy="correct the schema", command="schema diff")
    error = ErrorRecord("DataGate", GATE_MESSAGE, None)
    run = run_with(status="blocked", pushes=[], gates=[gate("data", row)], error=error)
    commands = [step.command for step in build(run).steps]
    assert commands[0] == "sluice schema diff digits"


def test_a_data_gate_that_a_person_overrode(run_with):
    row = check("damaged records", 3, "<= 0", passed=False)
    view = build(run_with(gates=[gate("data", row, override="known")]))
    assert view.headline == "Version 3 was pushed: data gate overridden by hand"
    assert view.tone == "warn" and view.gates[0].mark.word == "overridden"
    assert view.decisive == ["1 check of the data gate failed, accepted by hand: known"]


def test_failed(run_with):
    error = ErrorRecord("Trainer", "out of memory\n  try: less", None, ["line"])
    resume = "sluice resume digits --run 1"
    run = run_with(
        status="failed",
        pushes=NOT_REACHED,
        gates=[],
        error=error,
        resume_command=resume,
    )
    view = build(run)
    assert view.headline == "Failed in Trainer: nothing was pushed"
    assert view.error == error
    # A run whose code has changed cannot be resumed.
    assert [step.command for step in view.steps] == [resume, run.record.command]
    assert "corrected" in view.steps[1].text
    page = render_run(run)
    assert "out of memory" in page and resume in page


def test_interrupted(run_with):
    nodes = [NodeRecord("Trainer", "Trainer", "interrupted")]
    view = build(
        run_with(status="interrupted", pushes=NOT_REACHED, nodes=nodes, gates=[])
    )
    assert view.tone == "warn"
    assert view.headline == "Interrupted while Trainer ran: nothing was pushed"


def test_running(run_with):
    nodes = [
        NodeRecord("TFRecordGen", "TFRecordGen", "ran", 1.0),
        NodeRecord("Trainer", "Trainer", "running"),
    ]
    view = build(
        run_with(
            status="running",
            command="sluice run digits --workspace 'a b' --set x=1",
            ended_at=None,
            exit_code=None,
            pushes=NOT_REACHED,
            nodes=nodes,
            gates=[],
        )
    )
    assert view.headline == "Running: 1 of 2 nodes ended"
    assert [step.command for step in view.steps] == [
        "sluice status digits --workspace 'a b'",
        "sluice cancel digits --workspace 'a b'",
    ]
    assert view.decisive == []
    assert "Duration" not in [name for name, _, _ in view.tiles]


def test_up_to_date(run_with):
    served = [PushRecord("/serving", "already_served", 3, "/serving/3")]
    view = build(run_with(status="up_to_date", pushes=served))
    assert (view.tone, view.headline) == (
        "info",
        "Nothing to do: version 3 is served already",
    )


def test_the_closest_row_of_a_change(run_with):
    far = check("accuracy", 0.99, ">= 0.5")
    near = Check("loss change", "day: Mon", 0.1, 0.5, 0.549, True)
    near = replace(near, comparison="<=", measure="relative")
    view = build(run_with(gates=[gate("model", far, near)]))
    assert view.decisive == [
        "Closest to its limit: loss change on day: Mon is 0.09800, "
        "limit relative ≤ 0.1, baseline 0.5000"
    ]


def test_examples_of_a_row_are_listed(run_with):
    row = Check("x", "train", "none", None, 1, False, "bad", examples=("f.rec: 3",))
    page = render_run(run_with(gates=[gate("data", row)], status="blocked"))
    assert "<li><code>f.rec: 3</code></li>" in page


def test_what_has_changed_since_the_last_run_that_pushed(run_with):
    before = run_with(run_id="20251231T000000Z-aaaa", config={"train": {"seed": 1}})
    run = run_with(config={"train": {"seed": 2}})
    assert build(run).previous is None
    with read_run(run.run_dir) as found:
        view = build(found)
        page = render_run(found)
    assert view.previous is not None
    assert view.previous.run_id == before.record.run_id
    assert view.summary == [("config", "train.seed 1 → 2")]
    assert "changed-config" in [table.id for table in view.changes]
    assert 'href="../20251231T000000Z-aaaa/report.html"' in page


def test_a_damaged_run_before_does_not_hide_the_verdict(run_with):
    run_with({"statistics": {"splits": 7}}, run_id="20251231T000000Z-aaaa")
    with read_run(run_with({"statistics": {"splits": []}}).run_dir) as run:
        page = render_run(run)
    assert "what has changed since run 20251231T000000Z-aaaa is not known" in page
    assert "Version 3 was pushed" in page
