"""Signals and kills of ``sluice run``, one after another in one run.

Two runs start at once. The one that gets the lock is interrupted while TFX is imported.
Training is then resumed and stopped by SIGTERM in epoch 3, by two Ctrl-C, by a kill of
the zygote and by a kill of the runner. The last resume completes the run.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.run_page import write_report
from sluice import progress
from sluice.process_tree import descendants
from sluice.record.events import Stopping
from sluice.record.journal import Journal

pytestmark = pytest.mark.fault

EPOCHS = 6
# With 120 records and batches of 64.
STEPS_OF_TWO_EPOCHS = 4


class Training:
    """Resumes the run, and holds the training before its third epoch.

    Attributes:
      process: the runner.
      pids: its descendants at that time.
    """

    def __init__(self, place: Any, wait_for: Callable[..., Any]) -> None:
        self.place = place
        self._wait_for = wait_for
        self._hold = place.project / "hold"
        held = place.project / "held"
        held.unlink(missing_ok=True)
        self._hold.write_text(str(STEPS_OF_TWO_EPOCHS))
        self.process = place.start("resume", "digits", "--json")
        ended = self.process.poll
        wait_for(lambda: held.exists() or ended() is not None, "training")
        assert held.exists(), self.end().err
        self.pids = descendants(self.process.pid)

    @property
    def zygote(self) -> int:
        """Returns the pid of the runner's only child."""
        (pid,) = descendants(self.process.pid)[:1]
        assert (
            "runners.local.processes.zygote" in Path(f"/proc/{pid}/cmdline").read_text()
        )
        return pid

    def interrupt(self, number: int) -> None:
        """Signals the runner and waits until it has stopped the node."""
        before = self._stops()
        self.process.send_signal(number)
        self._wait_for(lambda: self._stops() > before, "the runner to take notice")

    def let_go(self) -> None:
        self._hold.unlink()

    def end(self) -> Any:
        return self.place.end(self.process)

    def _stops(self) -> int:
        events = Journal(self.place.run_dir).events()
        return sum(isinstance(event, Stopping) for event in events)


@pytest.fixture(scope="module")
def place(make_place: Callable[..., Any]) -> Iterator[Any]:
    place = make_place("runner", epochs=EPOCHS)
    yield place
    place.kill_started()


@pytest.fixture(scope="module")
def two_at_once(place: Any, wait_for: Callable[..., Any]) -> tuple[Any, Any]:
    """The process of the run that got the lock, and the outcome of the other."""
    both = [place.launch("run", "digits", "--json") for _ in range(2)]
    wait_for(lambda: any(one.poll() is not None for one in both), "the slower run")
    both.sort(key=lambda one: one.poll() is not None)
    return both[0], place.end(both[1])


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # It has just ended.


@pytest.fixture(scope="module")
def importing(
    two_at_once: tuple[Any, Any],
    place: Any,
    wait_for: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> Any:
    """Outcome of a Ctrl-C while TFX is imported; whether all processes have ended."""
    process, _ = two_at_once

    def imports() -> bool:
        maps = [_maps(pid) for pid in descendants(process.pid)]
        begun = bool(list(place.workspace.root.glob("runs/*/run.json")))
        return begun and any("tensorflow" in text for text in maps)

    wait_for(imports, "the import of TensorFlow")
    pids = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    return place.end(process), all(map(is_gone, pids))


@pytest.fixture(scope="module")
def terminated(
    importing: Any,
    place: Any,
    wait_for: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> dict[str, Any]:
    """A SIGTERM while training, and a second run just before it."""
    training = Training(place, wait_for)
    report = write_report(place.run_dir, place.project / "running.html")
    second = place.end(place.start("run", "digits", "--json"))
    training.interrupt(signal.SIGTERM)
    training.let_go()
    return {
        "pid": training.process.pid,
        "running_report": Path(report),
        "second": second,
        "outcome": training.end(),
        "gone": all(map(is_gone, training.pids)),
        "record": json.loads((place.run_dir / "run.json").read_text()),
        "report": shutil.copy(place.run_dir / "report.html", place.project),
        "checkpoints": list(place.workspace.checkpoints.glob("Trainer/*/ckpt-*.index")),
    }


@pytest.fixture(scope="module")
def interrupted_twice(
    terminated: Any,
    place: Any,
    wait_for: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> dict[str, Any]:
    """A Ctrl-C that the node does not react to, and a second one."""
    training = Training(place, wait_for)
    training.interrupt(signal.SIGINT)
    waited = training.process.poll() is None
    training.process.send_signal(signal.SIGINT)
    outcome = training.end()
    gone = all(map(is_gone, training.pids))
    return {"waited": waited, "outcome": outcome, "gone": gone}


@pytest.fixture(scope="module")
def without_zygote(
    interrupted_twice: Any,
    place: Any,
    wait_for: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> dict[str, Any]:
    training = Training(place, wait_for)
    os.kill(training.zygote, signal.SIGKILL)
    outcome = training.end()
    wait_for(lambda: all(map(is_gone, training.pids)), "the end of all processes")
    return {
        "outcome": outcome,
        "open": place.executions(1, 2),
        "report": shutil.copy(
            place.run_dir / "report.html", place.project / "failed.html"
        ),
    }


@pytest.fixture(scope="module")
def without_runner(
    without_zygote: Any,
    place: Any,
    wait_for: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> dict[str, Any]:
    """A SIGKILL of the runner while user code has a process in its own session."""
    sleeper = place.project / "sleeper"
    sleeper.touch()
    training = Training(place, wait_for)
    pid = int(sleeper.read_text())
    sleeper.unlink()
    assert pid in training.pids and len(training.pids) == 3
    training.process.kill()
    training.process.communicate()
    wait_for(lambda: all(map(is_gone, training.pids)), "the end of all processes")
    wait_for(lambda: not place.workspace.is_running(), "a free lock")
    return {
        "pid": training.process.pid,
        "record": json.loads((place.run_dir / "run.json").read_text()),
        "status": place.here("status", "digits"),
    }


@pytest.fixture(scope="module")
def completed(
    without_runner: Any,
    place: Any,
    wait_for: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> dict[str, Any]:
    """A resume to the end, and a run that waits for it."""
    (place.project / "hold").unlink()
    sleeper = place.project / "sleeper"
    sleeper.touch()
    command = place.record().resume_command.split()
    assert command[0] == "sluice"
    process = place.start(*command[1:], "--json")
    wait_for(place.workspace.is_running, "the lock")
    waiting = place.start("run", "digits", "--json", "--wait")
    outcome = place.end(process)
    return {
        "pid": process.pid,
        "outcome": outcome,
        "sleeper_is_gone": is_gone(int(sleeper.read_text())),
        "waiting": place.end(waiting),
    }


def test_of_two_simultaneous_runs_one_is_refused(two_at_once: tuple[Any, Any]) -> None:
    process, refused = two_at_once
    assert refused.code == 6
    assert "another run of this pipeline is in progress" in refused.err
    assert f"process {process.pid} on {os.uname().nodename}, since 20" in refused.err
    assert ": sluice run digits --json" in refused.err
    assert refused.document["exit_code"] == 6
    assert refused.document["run_id"] == ""


def test_a_signal_during_the_import_ends_the_run(importing: Any) -> None:
    outcome, gone = importing
    assert outcome.code == 130
    document = outcome.document
    assert (document["status"], document["exit_code"]) == ("interrupted", 130)
    assert document["resume_command"] in outcome.err
    assert gone


def test_a_second_run_is_refused_while_one_trains(terminated: Any) -> None:
    second = terminated["second"]
    assert second.code == 6
    assert f"process {terminated['pid']} on " in second.err
    assert ": sluice resume digits --json" in second.err


def test_sigterm_lets_training_write_a_checkpoint(terminated: Any) -> None:
    outcome = terminated["outcome"]
    assert outcome.code == 143
    document = outcome.document
    assert (document["status"], document["exit_code"]) == ("interrupted", 143)
    assert document["resume_command"] in outcome.err
    assert terminated["record"] == document
    states = outcome.states
    assert states["Trainer"] == "interrupted"
    assert states["Transform"] == "ran"
    assert states["Evaluator"] == "not_reached"
    assert terminated["checkpoints"]
    assert terminated["gone"]


def headline(report: Path, report_pages: Any) -> str:
    """Checks the page of a run whose training has not ended; returns its verdict."""
    report_pages.check(report, ("Verdict", "Run", "Data", "Training", "Provenance"))
    with report_pages.open(report) as page:
        return page.locator("#verdict .headline").inner_text().strip()


@pytest.mark.browser
def test_the_page_of_a_run_in_progress(terminated: Any, report_pages: Any) -> None:
    shown = headline(terminated["running_report"], report_pages)
    assert shown.startswith("Running: ")


@pytest.mark.browser
def test_the_page_of_an_interrupted_run(terminated: Any, report_pages: Any) -> None:
    shown = headline(Path(terminated["report"]), report_pages)
    assert shown == "Interrupted while Trainer ran: nothing was pushed."


@pytest.mark.browser
def test_the_page_of_a_failed_run(without_zygote: Any, report_pages: Any) -> None:
    shown = headline(Path(without_zygote["report"]), report_pages)
    assert shown.startswith("Failed")


def test_a_second_ctrl_c_kills_at_once(interrupted_twice: Any) -> None:
    assert interrupted_twice["waited"]
    outcome = interrupted_twice["outcome"]
    assert outcome.code == 130
    assert outcome.document["status"] == "interrupted"
    assert outcome.states["Trainer"] == "interrupted"
    assert interrupted_twice["gone"]


def test_a_killed_zygote_is_a_failed_run(without_zygote: Any) -> None:
    outcome = without_zygote["outcome"]
    assert outcome.code == 7
    error = outcome.document["error"]
    assert error["message"].startswith(
        "the process that runs the nodes was killed by signal 9"
    )
    assert outcome.document["status"] == "failed"
    assert outcome.document["resume_command"] in outcome.err
    assert outcome.states["Trainer"] == "interrupted"
    assert without_zygote["open"] == {}


def test_the_next_command_records_that_the_runner_was_killed(
    without_runner: Any,
) -> None:
    assert without_runner["record"]["status"] == "running"
    status = without_runner["status"]
    assert status.code == 0
    assert "status    interrupted" in status.out
    assert "the run was killed" in status.out
    run_id = without_runner["record"]["run_id"]
    assert f"resume:  sluice resume digits --run {run_id}" in status.out


def test_the_lock_of_a_dead_runner_is_taken_over_with_a_note(
    completed: Any, without_runner: Any
) -> None:
    (note,) = [
        note for note in completed["outcome"].document["notes"] if "dead owner" in note
    ]
    assert f"process {without_runner['pid']} on {os.uname().nodename}" in note
    assert note.endswith(": sluice resume digits --json")


def test_a_resume_completes_the_run(completed: Any, place: Any) -> None:
    outcome = completed["outcome"]
    assert outcome.code == 0, outcome.err
    assert outcome.document["status"] == "succeeded"
    assert set(outcome.states.values()) == {"ran"}
    tries = {node["id"]: node["attempts"] for node in outcome.document["nodes"]}
    assert tries.pop("Trainer") == 5
    assert set(tries.values()) == {1}
    assert (outcome.document["pushes"][0]["state"], len(place.executions())) == (
        "pushed",
        13,
    )
    assert set(place.executions().values()) == {1}
    place.assert_sound(versions=[1])


def test_a_process_left_by_user_code_is_killed(
    completed: Any,
) -> None:
    assert completed["sleeper_is_gone"]


def test_training_resumes_from_its_checkpoint(completed: Any, place: Any) -> None:
    run_id = completed["outcome"].document["run_id"]
    run_dir = place.workspace.run_dir(run_id)
    lines, _ = progress.read(run_dir / "progress" / "Trainer.jsonl")
    restored = [line["epoch"] for line in lines if line["event"] == "restored"]
    assert restored == [2, 2, 2, 2]
    epochs = [line["epoch"] for line in lines if line["event"] == "epoch"]
    assert epochs == [1, 2, 3, 4, 5, 6]
    (model_run,) = place.record().node("Trainer").outputs["model_run"]
    history = json.loads((Path(model_run) / "history.json").read_text())
    assert {len(values) for values in history.values()} == {EPOCHS}
    assert not list(place.workspace.checkpoints.iterdir())


def test_a_run_that_waited_is_up_to_date(completed: Any) -> None:
    waiting = completed["waiting"]
    assert waiting.code == 0
    assert f"waiting for process {completed['pid']} on " in waiting.err
    assert waiting.document["status"] == "up_to_date"
    run_id = completed["outcome"].document["run_id"]
    assert f"nothing has changed since run {run_id}" in waiting.err
