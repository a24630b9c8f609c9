"""Warm start in a pipeline: from nothing, then from the model that was pushed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice.record.run_record import RunRecord

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

WARM = "train.warm_start=served"


def _history(record: RunRecord) -> dict[str, list[float]]:
    (uri,) = record.node("Trainer").outputs["model_run"]
    return json.loads(Path(uri, "history.json").read_text())


def _payments(record: RunRecord) -> list[str]:
    (uri,) = record.node("Transform").outputs["transform_graph"]
    return Path(uri, "transform_fn/assets/payment_xf").read_text().splitlines()


def test_training_goes_on_from_the_served_model(trips):
    first = trips.run(WARM, "train.epochs=3", "train.learning_rate=0.05")
    assert first.pushes[0].state == "pushed"
    line = "there is no model for 'served' yet, weights are initial"
    assert first.notes == [f"Trainer: warm start: {line}"]
    losses = _history(first)["val_loss"]
    assert losses[-1] < 0.9 * losses[0], "it has learned"

    # The first run's own model is served now, and the run does not train again for it.
    again = trips.run(WARM, "train.epochs=3", "train.learning_rate=0.05")
    assert again.status == "up_to_date"

    warm = trips.run(WARM, "train.epochs=1", "train.learning_rate=1e-9")
    (model,) = first.node("Trainer").outputs["model"]
    assert warm.node("Trainer").inputs["base_model"] == [model]
    assert _history(warm)["val_loss"][0] == pytest.approx(losses[-1], rel=1e-5)

    # More cards than cash: each keeps its weights, though their ids have changed.
    more = [*trips.examples(), *trips.examples(10, start=20, payment=[b"card"])]
    trips.fill(train=more)
    warm = trips.run(WARM, "train.epochs=1", "train.learning_rate=1e-9")
    ids = [_payments(record) for record in (first, warm)]
    assert ids == [["cash", "card"], ["card", "cash"]]
    assert _history(warm)["val_loss"][0] == pytest.approx(losses[-1], rel=1e-5)
