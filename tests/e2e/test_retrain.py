"""Days of data: trained where there is a reason to, else skipped, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice.record.outcome import outcome, summarize

pytestmark = pytest.mark.e2e

SPANS = "data.splits={train: 'span-{SPAN}/train*', eval: 'span-{SPAN}/eval*'}"
BELOW = ("Transform", "Trainer", "Evaluator", "ModelVerdict", "Pusher")


def test_days_with_and_without_a_reason(empty_trips):
    trips = empty_trips
    trips.settings += [SPANS, "examples.window=2", "retrain.min_new_examples=50"]

    def day(span: int, **options):
        trips.fill(f"span-{span}", start=1000 * span)
        return trips.run(**options)

    first = day(1)
    assert (first.status, outcome(first)) == ("succeeded", "pushed")
    (row,) = first.gate_rows("retrain")
    assert (row.result, row.why) == ("yes", "no model is served yet")

    # 20 records of each split are fewer than 50.
    second = day(2)
    assert (second.status, second.exit_code) == ("skipped", 0)
    assert {second.node(name).state for name in BELOW} == {"skipped"}
    (row,) = second.gate_rows("retrain")
    assert (row.result, row.actual, row.baseline) == ("no", 40, "version 1")
    _, headline, causes = summarize(second)
    assert headline == "Not trained: there is no reason to"
    assert causes == ["new examples: 40, limit >= 50; new spans: 2"]
    shown = trips.shown(second)
    assert "retrain gate: no reason to train" in shown
    page = Path(second.report_uri or "").read_text()
    assert headline in page and "new examples" in page

    # The model of span 1 is still served: what it has not seen adds up.
    # A dry run changes nothing that a later run, or the choice of data, reads.
    accepted = sorted((trips.workspace.root / "state").rglob("*"))
    decided = day(3, to_nodes=("RetrainGate",), dry_run=True)
    assert decided.status == "succeeded" and outcome(decided) == "dry run: would train"
    assert decided.node("AcceptData").state == "skipped"
    assert sorted((trips.workspace.root / "state").rglob("*")) == accepted
    (row,) = decided.gate_rows("retrain")
    assert (row.result, row.actual, row.why) == ("yes", 80, "new spans: 2, 3")
    third = trips.run()
    assert outcome(third) == "pushed"
    spans = [span["span"] for span in third.spans["data"]]
    assert spans == [2, 3]


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

    # The window also holds span 2: the newest span is measured alone.
    other = [trips.example(3100 + n, label=[1 - n % 2]) for n in range(20)]
    trips.fill("span-3", start=3000, eval=other)
    third = trips.run(to_nodes=("RetrainGate",))
    (row,) = third.gate_rows("retrain")
    assert (row.result, row.actual, row.baseline) == ("yes", 0.0, 1.0)
    shown = "accuracy is 0.0000 (baseline 1.0000): absolute change -1.0000"
    assert row.sentence.startswith(shown)
