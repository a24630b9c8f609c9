"""A training that is killed in one run and resumed by a later one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from sluice import progress

pytestmark = pytest.mark.fault

EPOCHS = 4
# With 120 records and batches of 64.
STEPS_OF_TWO_EPOCHS = 4


@pytest.fixture(scope="module")
def place(make_place: Callable[..., Any]) -> Any:
    return make_place("resumed", epochs=EPOCHS)


def _train(place: Any, *options: str) -> tuple[Any, list[tuple[str, int]]]:
    """Runs up to the Trainer; returns its events with the number of the epoch."""
    outcome = place.here("run", "digits", "--to", "Trainer", *options, "--json")
    lines, _ = progress.read(place.run_dir / "progress" / "Trainer.jsonl")
    events = ("epoch", "restored")
    return outcome, [(i["event"], i["epoch"]) for i in lines if i["event"] in events]


def _kill_at(place: Any, step: int) -> None:
    (place.project / "kill").write_text(str(step))


def test_a_later_run_resumes_the_training_that_was_killed(place: Any) -> None:
    other = ("--set", "train.learning_rate=0.002")
    _kill_at(place, STEPS_OF_TWO_EPOCHS)
    outcome, events = _train(place)
    assert outcome.states["Trainer"] == "failed"
    assert f"killed by signal {signal.SIGKILL.value}" in outcome.err
    assert events == [("epoch", 1), ("epoch", 2)]
    (folder,) = (place.workspace.checkpoints / "Trainer").iterdir()

    outcome, events = _train(place, *other)
    assert outcome.states["Trainer"] == "ran"
    assert events == [("epoch", epoch) for epoch in range(1, EPOCHS + 1)]
    assert list(folder.glob("ckpt-*.index"))

    explained = place.here("explain", "digits", "Trainer").out
    outcome, events = _train(place)
    assert outcome.states["Trainer"] == "ran"
    # An epoch as short as this one is not always saved.
    (_, epoch), *rest = events
    assert epoch in (1, 2)
    assert events[0][0] == "restored"
    assert rest == [("epoch", later) for later in range(epoch + 1, EPOCHS + 1)]
    resumes = f"training resumes with epoch {epoch + 1} of 4"
    assert f"restored: {resumes}" in outcome.err
    assert f"from a checkpoint: {resumes}" in explained
    assert not list(place.workspace.checkpoints.iterdir())


def test_no_cache_trains_from_scratch(place: Any) -> None:
    changed = ("--set", "train.learning_rate=0.003")
    _kill_at(place, STEPS_OF_TWO_EPOCHS)
    outcome, _ = _train(place, *changed)
    assert outcome.states["Trainer"] == "failed"
    _kill_at(place, STEPS_OF_TWO_EPOCHS)
    outcome, events = _train(place, *changed, "--force", "Trainer")
    assert outcome.states["Trainer"] == "failed"
    assert events == [("epoch", 1), ("epoch", 2)]
    # The run is resumed, and so is the training that it began.
    outcome = place.here("resume", "digits", "--json")
    assert outcome.states["Trainer"] == "ran"
    lines, _ = progress.read(place.run_dir / "progress" / "Trainer.jsonl")
    assert [line["event"] for line in lines].count("restored") == 1
