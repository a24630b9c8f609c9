"""Spans: selected, compared with accepted ones, accepted by hand, rejected."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

SPANS = "data.splits={train: 'span-{SPAN}/train*', eval: 'span-{SPAN}/eval*'}"
REASON = "card payments were switched on"


@pytest.fixture
def spans(empty_trips):
    """A project whose splits are in folders span-1, span-2, ..."""
    empty_trips.settings.append(SPANS)
    return empty_trips


def _fill(trips: Any, span: int, payment: bytes | None = None, count: int = 20) -> None:
    other = {"payment": [payment]} if payment else {}
    train = trips.examples(count, start=1000 * span, **other)
    held = trips.examples(start=1000 * span + 500, **other)
    trips.fill(f"span-{span}", train=train, eval=held)


def _accepted(trips: Any) -> dict[str, dict[str, Any]]:
    folder = trips.workspace.root / "state" / "accepted"
    records = map(json.loads, map(Path.read_text, folder.glob("*/record.json")))
    return {record["name"]: record for record in records}


@pytest.fixture
def sluice(
    fork_command: Callable[..., Any],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``sluice run trips --json`` with further arguments."""

    def sluice(trips: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ("run", "trips", "--json", *arguments)
        process = fork_command(*command, cwd=trips.root, SLUICE_WORKSPACE="")
        return process.completed()

    return sluice


def test_drift_against_the_last_accepted_span(spans, sluice):
    trips = spans
    _fill(trips, 1)
    record = trips.run(to_nodes=("AcceptData",))
    assert record.status == "succeeded", record.error
    accepted = _accepted(trips)["span 1"]
    assert accepted["run_id"] == record.run_id and accepted["override"] is None
    assert accepted["splits"]["train"] == 20

    _fill(trips, 2, b"card", count=31)
    limit = "validate.max_count_change=0.5"
    record = trips.run(limit)
    rows = trips.stopped(record)
    assert set(rows) == {
        ("train", "payment", "drift"),
        ("eval", "payment", "drift"),
        ("train", None, "count_change"),
    }
    drift = rows["train", "payment", "drift"]
    assert (drift.baseline, drift.actual) == ("span 1", 0.5)
    assert (drift.measure, drift.limit) == ("L-infinity", 0.2)
    assert "current and previous is 0.5" in drift.why
    change = rows["train", None, "count_change"]
    assert (change.baseline, change.actual) == (20, 0.55)
    assert "31 examples, 20 in span 1" in change.why
    assert record.gates[0].override is None
    assert set(_accepted(trips)) == {"span 1"}
    documents = {item.kind: item.path for item in record.documents}
    path = trips.workspace.run_dir(record.run_id) / documents["baseline_statistics"]
    baseline = json.loads(path.read_text())
    assert baseline["baseline"]["run_id"] == accepted["run_id"]
    counts = {split: x["num_examples"] for split, x in baseline["splits"].items()}
    assert counts == {"train": "20", "eval": "20"}
    baseline = baseline["baseline"]
    assert (baseline["name"], baseline["spans"]) == ("span 1", [1])

    # Once, by hand, with a reason.
    settings = [part for item in (SPANS, limit) for part in ("--set", item)]
    accept = ("--accept-data", REASON)
    done = sluice(trips, *settings, "--to", "AcceptData", *accept)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    run_dir = trips.workspace.run_dir(document["run_id"])
    assert json.loads((run_dir / "run.json").read_text()) == document
    (gate,) = document["gates"]
    assert gate["passed"] and gate["override"] == REASON
    assert len([row for row in gate["rows"] if not row["passed"]]) == 3
    assert f"accepted by hand: {REASON}" in done.stderr
    assert "Traceback" not in done.stderr
    assert _accepted(trips)["span 2"]["override"] == REASON

    # The next run is judged as before: its own data is no baseline of itself.
    record = trips.run(limit)
    rows = trips.stopped(record)
    assert rows["train", "payment", "drift"].baseline == "span 1"
    assert record.gates[0].override is None

    # What was accepted is what the next span is compared with.
    _fill(trips, 3, b"card", count=31)
    record = trips.run_to_gate(limit)
    assert record.status == "succeeded", record.error
    rows = {
        (row.check, row.slice): row
        for row in record.gates[0].rows
        if row.baseline is not None
    }
    assert rows["drift since the data accepted last", "train"].baseline == "span 2"
    assert rows["change in examples", "train"].baseline == 31
