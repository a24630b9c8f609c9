"""A whole pipeline that is killed while it trains and pushes, and its model lost."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

pytestmark = [pytest.mark.fault, pytest.mark.acceptance]

CHANGE = (
    "evaluate.thresholds=[{metric: binary_accuracy, "
    "change: {direction: higher_is_better, absolute: -1.0}}]"
)


def versions(place):
    names = os.listdir(place.workspace.serving)
    return sorted(name for name in names if not name.startswith("."))


@pytest.fixture(scope="module")
def place(make_place):
    return make_place()


@pytest.fixture(scope="module")
def killed(place):
    """Outcomes of a killed runner in training, a killed Pusher, and the completion."""
    (place.project / "hold training").touch()
    process = place.launch("run", "clicks", "--json")
    pids = place.hold(process)
    process.kill()
    assert place.is_quiet(pids)
    place.let_go()
    Path(os.environ["KILLED_NODES"], "Pusher").touch()
    return [place.sluice("resume", "clicks", "--json") for _ in range(2)]


def test_training_resumes_from_its_checkpoint(killed):
    outcome, _ = killed
    # An epoch as short as these is not always saved.
    assert re.search(r"restored: training resumes with epoch [23] of 3", outcome.err)
    assert (outcome.code, outcome.document["error"]["node"]) == (7, "Pusher")
    attempts = {name: node["attempts"] for name, node in outcome.nodes.items()}
    assert (attempts["Transform"], attempts["Trainer"]) == (1, 2)


def test_the_model_is_pushed_once(killed, place):
    _, outcome = killed
    assert (outcome.code, outcome.document["status"]) == (0, "succeeded"), outcome.err
    (push,) = outcome.document["pushes"]
    assert (push["version"], versions(place)) == (1, ["1"])
    assert (Path(push["uri"]) / "saved_model.pb").is_file()
    assert not list(place.workspace.checkpoints.rglob("*ckpt*"))
    again = place.sluice("run", "clicks", "--json")
    assert (again.code, again.document["status"]) == (0, "up_to_date"), again.err


@pytest.mark.usefixtures("killed")
def test_only_the_served_model_can_be_read_by_others(place):
    """``private: true`` holds for every process of each run and resume."""
    serving = place.workspace.serving
    for path in place.workspace.root.rglob("*"):
        if path.is_file() and not path.is_relative_to(serving):
            assert path.stat().st_mode & 0o077 == 0, path
    assert (serving / "1" / "saved_model.pb").stat().st_mode & 0o044 == 0o044


@pytest.mark.usefixtures("killed")
def test_the_gate_holds_until_a_lost_baseline_is_retired(place):
    """A change cannot be measured against nothing; a person decides how to go on."""

    def rows(outcome):
        (gate,) = (g for g in outcome.document["gates"] if g["gate"] == "model")
        return {row["check"]: row["why"] for row in gate["rows"]}

    shutil.rmtree(place.workspace.artifacts / "Trainer" / "model")
    run = ("run", "clicks", "--set", "train.epochs=1", "--set", CHANGE, "--json")
    lost = place.sluice(*run)
    assert lost.code == 4, lost.err
    assert "the baseline is lost" in rows(lost)["binary_accuracy change"]
    assert "nothing is at" in rows(lost)["baseline"]
    retired = place.sluice("models", "retire", "clicks", "v1", "--reason", "disk")
    assert retired.code == 0, retired.err
    first = place.sluice(*run)
    assert first.code == 0, first.err
    assert "are retired" in rows(first)["binary_accuracy change"]
    assert versions(place) == ["1", "2"]
    # Found: an unchanged run pushed the retired model again.
    retired = place.sluice("models", "retire", "clicks", "v2", "--reason", "bad")
    assert retired.code == 0, retired.err
    again = place.sluice(*run)
    assert (again.code, versions(place)) == (4, ["1", "2"])
    assert "was retired: bad; train another" in rows(again)["retired model"]
    shutil.rmtree(place.workspace.serving / "2")
    assert (place.sluice(*run).code, versions(place)) == (4, ["1"])
