"""Trials beside runs: no version, no baseline, no accepted data; one cache."""

from __future__ import annotations

import pytest

from sluice.record.outcome import outcome

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]


def test_a_trial_leaves_nothing_but_the_cache(trips):
    first = trips.run()
    assert outcome(first) == "pushed"
    served = first.node("Trainer").outputs["model"]

    def kept():
        places = (trips.workspace.serving, trips.workspace.root / "state")
        return sorted(path for place in places for path in place.rglob("*"))

    before, lower = kept(), "train.learning_rate=0.005"
    trips.fill(train=trips.examples(25))
    trial = trips.run(lower, trial=True)
    assert (outcome(trial), trial.exit_code) == ("trial: passed", 0)

    gate = "{metric: example_count, lower_bound: 1000}"
    second = trips.run("train.epochs=1", f"evaluate.thresholds=[{gate}]", trial=True)
    assert (outcome(second), second.exit_code) == ("trial: blocked (model gate)", 4)
    assert second.node("Trainer").state == "ran"
    assert second.node("Evaluator").inputs["baseline_model"] == served
    assert kept() == before

    run = trips.run(lower)
    ran = {node.id for node in run.nodes if node.state == "ran"}
    assert ran == {"AcceptData", "ModelVerdict", "Pusher"}
    assert run.pushes[0].version == 2
    assert run.node("Trainer").outputs == trial.node("Trainer").outputs
    assert run.node("Evaluator").inputs["baseline_model"] == served
