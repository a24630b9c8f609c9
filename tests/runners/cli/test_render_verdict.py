"""Rendering of a gate's verdict."""

from __future__ import annotations

import io

import pytest

from runners.cli.rich_console import PlainConsole
from runners.cli.run_view import MAX_DETAILS, MAX_ROWS, print_outcome, print_verdict
from sluice.record.outcome import next_steps, summarize
from sluice.record.verdict import Check, Verdict
from tests.kit.runs import a_gate, a_record

pytestmark = pytest.mark.unit


WHY = "Examples contain values missing from the schema: Apple Pay (~1%), Bit (<1%)."
PLACE = "/srv/data/trips/20261120/train-00003-of-00010.tfrecord.gz, record 5,123"


def _failed(number: int, **changes: object) -> Check:
    fields: dict = {
        "check": f"feature 'pickup_community_area_{number}'",
        "slice": "train",
        "limit": "the domain's 7 values",
        "baseline": "span 20261119",
        "result": "FAIL",
        "why": WHY,
        "policy": "validate.default: fail",
        "examples": (PLACE,),
    }
    return Check(**(fields | changes))


HOLDS = Check(check="number of examples", slice="train", limit=">= 1", actual=10_502)


def _shown(rows: tuple[Check, ...], width: int) -> list[str]:
    text = io.StringIO()
    console = PlainConsole(file=text, width=width, color_system=None)
    print_verdict(console, Verdict("data", rows))
    return [line.rstrip() for line in text.getvalue().splitlines()]


@pytest.mark.parametrize("gate", ["data", "model"])
def test_a_run_that_a_gate_stopped_says_what_its_page_says(gate):
    fields = {"policy": None, "examples": ()} if gate == "model" else {}
    failed = a_gate(gate, _failed(1, **fields))
    record = a_record(status="blocked", gates=[failed], pushes=[])
    text = io.StringIO()
    console = PlainConsole(file=text, width=250, color_system=None)
    print_outcome(console, record)
    _, headline, causes = summarize(record)
    assert headline == f"Not pushed: the {gate} gate stopped the run"
    *_, (step, command) = next_steps(record)
    lines = "\n".join([headline, *(f"  - {cause}" for cause in causes)])
    assert f"{lines}\n" in text.getvalue() and f"{step}: {command}\n" in text.getvalue()
    blocked = gate == "model"
    assert (command == record.command) is not blocked, "the one that was blocked"


def test_many_failures_are_bounded():
    rows = (*(HOLDS for _ in range(90)), *(_failed(number) for number in range(50)))
    lines = _shown(rows, 250)
    assert len(lines) < MAX_ROWS + 2 * MAX_DETAILS + 6
    assert sum(" FAIL " in line for line in lines) == MAX_ROWS
    assert sum(line.startswith("  - ") for line in lines) == MAX_DETAILS
    assert lines[-1] == "and 100 more: see run.json"
