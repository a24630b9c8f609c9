"""Days of data: trained if the served model got worse, else skipped."""

from __future__ import annotations

import pytest

from sluice.record.outcome import outcome, summarize

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

SPANS = "data.splits={train: 'span-{SPAN}/train*', eval: 'span-{SPAN}/eval*'}"


def test_a_served_model_that_got_worse_is_a_reason(empty_trips):
    trips = empty_trips
    drop = "{metric: accuracy, change: {direction: higher_is_better, absolute: -0.5}}"
    trips.settings += [
        *(SPANS, "examples.window=2", "train.epochs=60", "train.batch_size=10"),
        "evaluate.metrics=[{class: BinaryAccuracy, name: accuracy}]",
        f"retrain.metric_drop=[{drop}]",
    ]

    trips.fill("span-1", start=1000)
    first = trips.run()
    assert outcome(first) == "pushed"
    assert first.node("ServedEvaluator").state == "ran"
    assert [x.node for x in first.documents if x.kind == "metrics"] == ["Evaluator"]

    trips.fill("span-2", start=2000)
    second = trips.run()
    (row,) = second.gate_rows("retrain")
    assert (second.status, row.result, row.baseline) == ("skipped", "no", 1.0)
    assert row.actual == 1.0
    assert {second.node(name).state for name in ("Transform", "Pusher")} == {"skipped"}
    assert summarize(second)[1] == "Not trained: there is no reason to"
    assert "retrain gate: no reason to train" in trips.shown(second)

    # The window also holds span 2: the newest span is measured alone.
    other = [trips.example(3100 + n, label=[1 - n % 2]) for n in range(20)]
    trips.fill("span-3", start=3000, eval=other)
    state = trips.workspace.root / "state"
    before = sorted(state.rglob("*"))
    third = trips.run(to_nodes=("RetrainGate",), dry_run=True)
    assert sorted(state.rglob("*")) == before, "a later decision reads it"
    assert outcome(third) == "dry run: would train"
    (row,) = third.gate_rows("retrain")
    assert (row.result, row.actual, row.baseline) == ("yes", 0.0, 1.0)
    shown = "accuracy is 0 (baseline 1): absolute change -1, limit <= -0.5"
    assert row.sentence == shown
