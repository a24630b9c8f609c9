"""The wall clock is set back by a day, between two commands or during one."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.fault, pytest.mark.acceptance]

DAY_S = 24 * 60 * 60
ANOTHER_MODEL = ("--set", "train.seed=3")


@pytest.fixture(scope="module")
def yesterday(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process for which it is a day earlier."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("clock") / "clock_back.so"
    source = Path(__file__).parent / "clock_back.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    environment = {"LD_PRELOAD": str(library), "CLOCK_BACK_S": str(DAY_S)}
    return environment


def _newest_model(place: Any) -> int:
    """Returns the id of the model that a resolver finds, in ML Metadata."""
    outcome = place.here("run", "digits", *ANOTHER_MODEL, "--to", "LatestBlessedModel")
    assert outcome.code == 0, outcome.err
    (uri,) = place.record().node("LatestBlessedModel").outputs["model"]
    return place.record().artifacts[uri].id


def test_a_run_is_resumed_a_day_before_it_began(
    served: Any, yesterday: dict[str, str]
) -> None:
    """The run stays the newest one, and so do the models and runs after it."""
    place = served
    first = _newest_model(place)
    place.kill("Trainer", "at the start")
    begun = place.here("run", "digits", *ANOTHER_MODEL, "--json")
    assert begun.code == 7

    resumed = place.sluice("resume", "digits", "--json", **yesterday)
    assert resumed.code == 0, resumed.err
    document = resumed.document
    assert document["run_id"] == begun.document["run_id"]
    assert document["resumed_at"][0] < document["started_at"]
    states = resumed.states
    assert {states.pop(node) for node in ("Trainer", "Evaluator", "Pusher")} == {"ran"}
    assert document["pushes"][0]["version"] == 2
    tries = {node["id"]: node["attempts"] for node in document["nodes"]}
    assert (tries["Transform"], tries["Trainer"]) == (1, 2)

    # Nothing to do, and the newest run all the same.
    again = place.sluice("run", "digits", *ANOTHER_MODEL, "--json", **yesterday)
    assert (again.code, again.document["status"]) == (0, "up_to_date")
    assert again.document["started_at"] < begun.document["started_at"]
    ids = place.workspace.run_ids()
    assert ids[-1] == again.document["run_id"] > document["run_id"]
    status = place.sluice("status", "digits", "--json", **yesterday)
    assert status.document["run_id"] == ids[-1]
    runs = place.here("runs", "digits", "--json")
    assert [run["run_id"] for run in json.loads(runs.out)] == ids[::-1]
    refused = place.sluice("resume", "digits", **yesterday)
    assert refused.code == 2
    assert "the last one has succeeded" in refused.err

    # The clock is right again.
    later = place.here("run", "digits", *ANOTHER_MODEL, "--json")
    assert (later.code, later.document["status"]) == (0, "up_to_date")
    assert later.document["run_id"] > again.document["run_id"]
    second = _newest_model(place)
    assert second > first
    assert _created(place, second) < _created(place, first)
    place.assert_sound(versions=[1, 2])


def test_the_clock_is_set_back_during_a_run(
    served: Any, yesterday: dict[str, str], wait_for: Callable[..., Any]
) -> None:
    place = served
    hold, held = place.project / "hold", place.project / "held"
    back = place.project / "clock is back"
    held.unlink(missing_ok=True)
    hold.write_text("1")
    run = ("run", "digits", "--set", "train.seed=4", "--json")
    # Not a fork: the library that sets the clock back is loaded at the start.
    process = place.launch(*run, **yesterday, CLOCK_BACK_WHEN=str(back))
    try:
        wait_for(lambda: held.exists() or process.poll() is not None, "training")
        back.touch()
    finally:
        hold.unlink()
    ended = place.end(process)
    back.unlink()
    assert ended.code == 0, ended.err
    document = ended.document
    assert document["ended_at"] < document["started_at"], "the clock was not set back"
    took = {node["id"]: node["duration_s"] for node in document["nodes"]}
    assert all(0 <= seconds < 240 for seconds in took.values()), took
    assert document["pushes"][0]["version"] == 2
    place.assert_sound(versions=[1, 2])

    again = place.here(*run)
    assert (again.code, again.document["status"]) == (0, "up_to_date")


def _created(place: Any, artifact: int) -> int:
    query = "SELECT create_time_since_epoch FROM Artifact WHERE id = ?"
    with contextlib.closing(sqlite3.connect(place.workspace.metadata_db)) as data:
        return data.execute(query, (artifact,)).fetchone()[0]
