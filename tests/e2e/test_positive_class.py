"""Recall and precision of the class that ``label.positive`` names, up to the verdict.

A model that knows the way of payment alone predicts 0 for cards and 1 for cash.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

_METRICS = "[Recall, Precision, ExampleCount]"
_THRESHOLDS = (
    "[{metric: recall, lower_bound: 0.1}, {metric: precision, lower_bound: 0.1}]"
)
# Label, whether it was paid by card, and how often that is in the eval split.
_EVAL = ((0, True, 9), (0, False, 3), (1, True, 4), (1, False, 24))


@pytest.mark.parametrize(
    ("positive", "recall", "precision"), [(0, 9 / 12, 9 / 13), (1, 24 / 28, 24 / 27)]
)
def test_the_gate_judges_the_named_class(trips, positive, recall, precision):
    records = [
        trips.example(
            1000 + number, label=[label], payment=[b"card" if card else b"cash"]
        )
        for label, card, count in _EVAL
        for number in range(count)
    ]
    trips.fill(train=trips.examples(200), eval=records)
    record = trips.run(
        f"label.positive={positive}",
        "features={payment: {kind: vocabulary}}",
        "train.epochs=20",
        "train.learning_rate=0.02",
        f"evaluate.metrics={_METRICS}",
        f"evaluate.thresholds={_THRESHOLDS}",
    )
    (verdict,) = [gate for gate in record.gates if gate.gate == "model"]
    rows = {row.check: row.actual for row in verdict.rows}
    assert rows["positive class"] == str(positive)
    assert rows["recall"] == pytest.approx(recall)
    assert rows["precision"] == pytest.approx(precision)
