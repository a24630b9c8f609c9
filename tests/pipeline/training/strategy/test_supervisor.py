"""The supervisor of a training's processes, with trainings that need no TensorFlow.

Each test is a process of its own, since a fork of pytest's would have its threads.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest

from tests.pipeline.training.strategy.supervised import DEADLINE_S, Supervised

pytestmark = [pytest.mark.unit, pytest.mark.fault]


@pytest.fixture
def supervised(tmp_path: Path) -> Supervised:
    return Supervised(tmp_path)


def test_each_process_knows_its_place_in_the_cluster(supervised):
    status, output, errors = supervised.run(
        """
        def train():
            Path(task()).write_text(os.environ["TF_CONFIG"])
            print("hello")
            os.write(2, b"native\\n")
            assert os.environ["TMPDIR"] != "/tmp"
            assert ("SLUICE_PROGRESS_FILE" in os.environ) == (task() == "worker0")

        supervise(train, ProcessSettings(workers=2))
        print("returned")
        """
    )
    assert (status, output) == (0, "returned\n"), errors
    lines = ("[worker 0] hello", "[worker 0] native", "[worker 1] hello")
    assert all(line in errors.splitlines() for line in lines)
    configs = [
        json.loads((supervised.folder / f"worker{index}").read_text())
        for index in range(2)
    ]
    assert [item["task"] for item in configs] == [
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
    ]
    assert configs[0]["cluster"] == configs[1]["cluster"]
    assert len(set(configs[0]["cluster"]["worker"])) == 2


def test_servers_end_with_the_coordinator(supervised):
    status, _, errors = supervised.run(
        """
        def train():
            Path(task()).touch()
            if task() != "chief0":
                serve()
            for name in ("worker0", "worker1", "ps0"):
                wait_for(name)

        supervise(train, ProcessSettings(workers=2, parameter_servers=1))
        """
    )
    assert status == 0, errors


def test_after_a_killed_worker_all_are_restarted(supervised):
    status, _, errors = supervised.run(
        """
        def train():
            with open(task(), "a") as file:
                file.write("started\\n")
            if task() == "worker1" and first("killed"):
                wait_for("waited")
                kill()
            if task() == "worker0" and first("waited"):
                serve()

        supervise(train, ProcessSettings(workers=2))
        """
    )
    assert status == 0, errors
    (note,) = supervised.notes
    assert note.startswith("worker 1 was killed by signal 9")
    assert note.endswith("restart 1 of 3: all processes restart")
    starts = [
        (supervised.folder / f"worker{index}").read_text().count("started")
        for index in range(2)
    ]
    assert starts == [2, 2]


@pytest.mark.parametrize(
    ("restarts", "what"),
    [
        (2, "the training was given up after 2 restarts of its processes"),
        (0, "the training was not restarted"),
    ],
)
def test_restarts_are_bounded(supervised, restarts, what):
    status, _, errors = supervised.run(
        f"""
        def train():
            if task() == "worker1":
                os._exit(7)
            serve()

        supervise(train, ProcessSettings(workers=2, max_restarts={restarts}))
        """
    )
    assert status == 1
    assert len(supervised.notes) == restarts
    assert what in errors
    assert "where:    worker 1" in errors
    assert "found:    worker 1 ended its process with status 7" in errors


@pytest.mark.parametrize(
    "hang", ["kill(signal.SIGSTOP)", "signal.pause()"], ids=["stopped", "waiting"]
)
def test_a_hanging_worker_is_killed(supervised, hang):
    status, _, errors = supervised.run(
        f"""
        def train():
            if first(task()):
                if task() == "worker1":
                    {hang}
                serve()

        supervise(train, ProcessSettings(workers=2, stalled_after_s=2))
        """
    )
    assert status == 0, errors
    (note,) = supervised.notes
    assert note.startswith("worker 1 made no progress for ")
    assert ("(stopped)" in note) == ("SIGSTOP" in hang)


def test_an_error_of_the_training_is_raised(supervised):
    status, output, errors = supervised.run(
        """
        def train():
            if task() == "worker1":
                raise KeyError("no such layer")
            serve()

        try:
            supervise(train, ProcessSettings(workers=2))
        except KeyError as error:
            print("raised", error, "in train" in str(error.__cause__))
        """
    )
    assert (status, output) == (0, "raised 'no such layer' True\n"), errors
    assert supervised.notes == []
    assert "[worker 1] KeyError: 'no such layer'" in errors


def test_of_several_errors_the_one_with_examples_is_raised(supervised):
    status, output, errors = supervised.run(
        """
        from sluice.errors import NodeError

        def train():
            if task() == "worker1":
                time.sleep(0.5)
                raise NodeError("the loss is nan", examples=["batch 5, example 8"])
            raise NodeError("the loss is nan")

        try:
            supervise(train, ProcessSettings(workers=3))
        except NodeError as error:
            print(error.examples)
        """
    )
    assert (status, output) == (0, "('batch 5, example 8',)\n"), errors


def test_an_error_that_cannot_be_pickled_keeps_its_text(supervised):
    status, _, errors = supervised.run(
        """
        def train():
            class Local(Exception):
                pass
            raise Local("no such layer")

        supervise(train, ProcessSettings(workers=2))
        """
    )
    assert status == 1
    assert "the training failed: Local: no such layer" in errors


def test_a_lost_connection_restarts_all(supervised):
    status, _, errors = supervised.run(
        """
        class UnavailableError(Exception):
            pass

        def train():
            if task() == "worker0" and first("lost"):
                raise UnavailableError("Socket closed")

        supervise(train, ProcessSettings(workers=2))
        """
    )
    assert status == 0, errors
    (note,) = supervised.notes
    assert note.startswith("worker 0 raised UnavailableError: Socket closed")


def test_a_stop_waits_for_the_checkpoint_of_all(supervised):
    script = supervised.start(
        """
        def train():
            with interrupt.cooperative():
                set_fitting(True)
                Path(task()).touch()
                while not interrupt.requested():
                    beat()
                    time.sleep(0.01)
                time.sleep(0.3)
                Path(task() + ".saved").touch()

        interrupt.listen()
        try:
            supervise(train, ProcessSettings(workers=2))
        except interrupt.Interrupted:
            print("interrupted")
        """
    )
    with script:
        supervised.wait_for_file("worker0")
        supervised.wait_for_file("worker1")
        script.terminate()
        output, errors = script.communicate(timeout=DEADLINE_S)
    assert output == "interrupted\n", errors
    assert (supervised.folder / "worker0.saved").exists()
    assert (supervised.folder / "worker1.saved").exists()


def test_a_worker_that_is_stopped_by_itself_interrupts_the_training(supervised):
    status, _, errors = supervised.run(
        """
        def train():
            kill(signal.SIGTERM)
            serve()

        interrupt.listen()
        supervise(train, ProcessSettings(workers=2))
        """
    )
    assert status != 0
    assert "Interrupted" in errors.splitlines()[-1]


def test_before_the_first_step_a_stop_does_not_wait(supervised):
    script = supervised.start(
        """
        def train():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path(task()).touch()
            serve()

        interrupt.listen()
        supervise(train, ProcessSettings(workers=2))
        """
    )
    with script:
        supervised.wait_for_file("worker1")
        asked = time.monotonic()
        script.terminate()
        _, errors = script.communicate(timeout=DEADLINE_S)
    assert "Interrupted" in errors
    assert time.monotonic() - asked < 5


def test_no_process_outlives_the_supervisor(supervised):
    script = supervised.start(
        """
        def train():
            Path(task()).write_text(str(os.getpid()))
            serve()

        supervise(train, ProcessSettings(workers=2, parameter_servers=1))
        """
    )
    with script:
        for name in ("chief0", "worker0", "worker1", "ps0"):
            supervised.wait_for_file(name)
        children = psutil.Process(script.pid).children()
        assert len(children) == 4
        script.kill()
        gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (4, [])


@pytest.mark.parametrize("max_restarts", [3, 0])
def test_training_survives_a_worker_of_parameter_servers(supervised, max_restarts):
    status, _, errors = supervised.run(
        f"""
        def train():
            with open("starts", "a") as file:
                file.write(task() + "\\n")
            if task() == "worker1" and first("killed"):
                kill()
            if task() != "chief0":
                serve()
            wait_for("killed")
            while not Path("progress.jsonl").exists():
                beat()
                time.sleep(0.01)

        settings = ProcessSettings(
            workers=2, parameter_servers=1, max_restarts={max_restarts}
        )
        supervise(train, settings)
        """
    )
    assert status == 0, errors
    starts = (supervised.folder / "starts").read_text().split()
    assert starts.count("chief0") == 1
    (note,) = supervised.notes
    assert note.startswith("worker 1 was killed by signal 9")
    goes_on = "training goes on without" if max_restarts == 0 else "1 of 3: its process"
    assert goes_on in note


def test_after_a_killed_parameter_server_all_are_restarted(supervised):
    status, _, errors = supervised.run(
        """
        def train():
            with open("starts", "a") as file:
                file.write(task() + "\\n")
            if task() == "ps0" and first("killed"):
                wait_for("waited")
                kill()
            if task() != "chief0" or first("waited"):
                serve()

        supervise(train, ProcessSettings(workers=2, parameter_servers=1))
        """
    )
    assert status == 0, errors
    starts = (supervised.folder / "starts").read_text().split()
    assert starts.count("chief0") == 2
    (note,) = supervised.notes
    assert note.startswith("parameter server 0 was killed by signal 9")
