"""A search for values: what it finds, and that it resumes without repeating a trial."""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from typing import Any

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.fault, pytest.mark.acceptance]

DONE, FAILED, STOPPED, KILLED = 0, 1, 42, -signal.SIGKILL
STEPS_PER_TRIAL = 20
RATES = {"train.learning_rate": [1e-7, 0.01], "train.seed": [1, 2, 3]}
TUNE = {"trials": 4, "space": RATES}


def document(work: Any) -> dict[str, Any]:
    return json.loads((work.path / "out/trials.json").read_text())


def epochs(work: Any) -> dict[str, list[int]]:
    """Returns the epochs that were trained, by trial."""
    found = defaultdict(list)
    for event in work.events("epoch"):
        found[event["trial"]].append(event["epoch"])
    return found


@pytest.fixture(scope="module")
def searched(trainings: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A search that nothing has interrupted."""
    work = trainings.folder(tmp_path_factory.mktemp("searched"))
    assert trainings.run(work.path, {"epochs": 2}, tune=TUNE) == DONE, work.log
    return work


def test_a_learning_rate_of_nothing_loses(searched):
    found = document(searched)
    trials = {trial["number"]: trial for trial in found["trials"]}
    assert sorted(trials) == [1, 2, 3, 4]
    assert len({str(trial["values"]) for trial in trials.values()}) == 4
    best = found["trials"][0]
    assert best["values"]["train.learning_rate"] == 0.01
    assert best["objective"] == min(trial["objective"] for trial in trials.values())
    assert all(
        trial["epochs"] == 2 and trial["duration_s"] > 0 for trial in trials.values()
    )
    by_rate = defaultdict(list)
    for trial in trials.values():
        by_rate[trial["values"]["train.learning_rate"]].append(trial["objective"])
    assert max(by_rate[0.01]) < 0.95 * min(by_rate[1e-7])
    kept = json.loads((searched.path / "out/best.json").read_text())
    assert kept["values"] == best["values"]


def test_a_killed_search_repeats_no_finished_trial(trainings, searched, tmp_path):
    work = trainings.folder(tmp_path)
    kill = {"signal": int(signal.SIGKILL), "tune": TUNE}
    codes = [
        # In the second epoch of the third trial.
        trainings.run(
            work.path, {"epochs": 2}, **kill, at_step=2 * STEPS_PER_TRIAL + 14
        ),
        # In the first epoch of the fourth, which is the second of this process.
        trainings.run(work.path, {"epochs": 2}, tune=TUNE, at_step=14),
        trainings.run(work.path, {"epochs": 2}, tune=TUNE),
    ]
    assert codes == [KILLED, STOPPED, DONE], work.log
    assert epochs(work) == {f"trial {i}/4": [1, 2] for i in (1, 2, 3, 4)}
    ended = [line.partition("  ")[0] for line in work.lines("trial")]
    assert ended == [f"trial {i}/4" for i in (1, 2, 3, 4)]
    whole, resumed = document(searched), document(work)
    for one, other in zip(whole["trials"], resumed["trials"], strict=True):
        assert one["values"] == other["values"]
        assert one["number"] == other["number"]
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-5)
    logs = {path.name for path in (work.path / "out/tensorboard").iterdir()}
    assert logs == {"1", "2", "3", "4"}


def test_hyperband_goes_on_with_the_best(trainings, tmp_path):
    work = trainings.folder(tmp_path)
    tune: dict[str, Any] = {"algorithm": "hyperband", "epochs": 3, "space": RATES}
    tune["objective"] = {"metric": "val_auc"}
    assert trainings.run(work.path, {"epochs": 9}, tune=tune) == DONE, work.log
    trials = document(work)["trials"]
    assert document(work)["direction"] == "max"
    assert trials[0] == max(trials, key=lambda trial: trial["objective"])
    trained = {int(name.split()[1]): found for name, found in epochs(work).items()}
    longer = [trial for trial in trials if trained[trial["number"]] == [2, 3]]
    assert longer, "none of the trials goes on with another"
    assert {trial["epochs"] for trial in trials} == {1, 3}
    assert all(trial["epochs"] == 3 for trial in longer)
    # Those that went on were the best of their round.
    assert any(trial["values"]["train.learning_rate"] == 0.01 for trial in longer)


def test_a_search_without_a_result_fails(trainings, tmp_path):
    work = trainings.folder(tmp_path)
    tune = {"objective": {"metric": "val_f1", "mode": "max"}, "space": RATES}
    assert trainings.run(work.path, {"epochs": 1}, tune=tune) == FAILED
    assert "there is no metric 'val_f1' among auc" in work.log
    assert not (work.path / "out/trials.json").exists()
