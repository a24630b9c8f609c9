"""Trainings of several processes that are killed, hang or are asked to stop."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from pipeline.config.train import Train
from sample_data.tf_example import encode
from sluice import interrupt, progress
from sluice.tfrecords import tfrecord
from tests.kit.forked_command import call_as_node
from tests.kit.wait import DEADLINE_S, wait_for

pytestmark = [pytest.mark.fault, pytest.mark.tf]

WORKERS: dict[str, Any] = {"processes": 2}
SERVERS: dict[str, Any] = {
    **WORKERS,
    "strategy": "parameter_server",
    "parameter_servers": 1,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples whose label is whether ``a`` is positive, in two files per split."""
    directory = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(5)
    for name, count in {
        "train-0": 48,
        "train-1": 48,
        "eval-0": 16,
        "eval-1": 16,
    }.items():
        values = random.normal(size=count)
        tfrecord.write(
            directory / f"{name}.gz",
            [encode({"a_xf": [float(a)], "y_xf": [int(a > 0)]}) for a in values],
        )
    return directory


class Training:
    """A training in a process like a node's."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder = folder
        self._data = data
        self._progress = folder / "progress.jsonl"
        self._process: Any = None

    def start(self, waits: bool = True, **settings: Any) -> None:
        """Starts it, or a second attempt; it waits in its second epoch."""
        callback = {
            "function": "tests.kit.train_pairs:Wait",
            "params": {"folder": str(self.folder)},
        }
        callbacks = [callback] if waits else []
        given = {"epochs": 3, "batch_size": 16, "callbacks": callbacks, **settings}
        train = Train.model_validate(given)
        environment = {
            **os.environ,
            progress.PROGRESS_FILE: str(self._progress),
            interrupt.CHECKPOINT_DIR: str(self.folder / "checkpoints"),
        }
        (self.folder / "end").unlink(missing_ok=True)
        self._process = multiprocessing.get_context("forkserver").Process(
            target=call_as_node,
            args=(
                "tests.kit.train_pairs:train",
                environment,
                self.folder / "log",
                str(self.folder),
                str(self._data),
                train.model_dump(),
            ),
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_it_waits(self) -> None:
        """Returns when training is in the middle of its second epoch."""
        self.wait_for((self.folder / "waiting").exists)

    def process(self, name: str) -> psutil.Process:
        """Returns one of its processes by what the log calls it."""
        comm = f"sluice:{name}"[:15]
        (found,) = (
            child
            for child in psutil.Process(self.pid).children()
            if Path(f"/proc/{child.pid}/comm").read_text().strip() == comm
        )
        return found

    def go_on(self) -> None:
        (self.folder / "go").touch()

    def end(self) -> str:
        """Waits for its end and returns how it ended."""
        self._process.join(DEADLINE_S)
        end = self.folder / "end"
        return end.read_text() if end.exists() else self.log

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def history(self) -> dict[str, list[float]]:
        """The metrics by epoch."""
        return json.loads((self.folder / "run/history.json").read_text())

    @property
    def notes(self) -> list[str]:
        """What ends in the record."""
        lines, _ = progress.read(self._progress)
        return [line["line"] for line in lines if line.get("note")]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        wait_for(lambda: condition() or not self._process.is_alive(), "the training")
        assert condition(), self.log


@pytest.fixture
def training(server, tmp_path: Path, data: Path) -> Training:
    return Training(tmp_path, data)


@pytest.fixture(scope="module")
def uninterrupted(
    server, tmp_path_factory: pytest.TempPathFactory, data: Path
) -> Training:
    training = Training(tmp_path_factory.mktemp("uninterrupted"), data)
    histograms = {"tensorboard": {"histograms": 1}}
    training.start(waits=False, **WORKERS, **histograms)
    assert training.end() == "done"
    return training


def same_history(training: Training, other: Training) -> None:
    """The epochs of both have the same losses."""
    for name in ("loss", "val_loss"):
        assert len(training.history[name]) == 3
        np.testing.assert_allclose(
            training.history[name], other.history[name], rtol=1e-4
        )


def test_two_workers_train_one_model(uninterrupted):
    assert uninterrupted.notes == []
    assert (uninterrupted.folder / "model" / "saved_model.pb").is_file()
    lines, _ = progress.read(uninterrupted.folder / "progress.jsonl")
    assert [line["epoch"] for line in lines if line["event"] == "epoch"] == [1, 2, 3]


@pytest.mark.parametrize("metrics", [["BinaryAccuracy"], ["AUC"]])
def test_a_nan_on_one_worker_names_its_example(server, tmp_path, metrics):
    for name in ("train-0", "train-1", "eval-0", "eval-1"):
        values = [float(i % 5) for i in range(40)]
        if name == "train-1":  # of worker 1
            values[29] = math.nan
        examples = [encode({"a_xf": [a], "y_xf": [int(a > 2)]}) for a in values]
        tfrecord.write(tmp_path / f"{name}.gz", examples)
    training = Training(tmp_path, tmp_path)
    training.start(waits=False, **WORKERS, metrics=metrics)
    raised = training.end().rpartition("NodeError: ")[2]
    assert raised.startswith("the loss is nan, so training has stopped\n")
    assert "not finite in 1 of 8 examples of worker 1: a_xf" in raised
    assert re.search(r"where: +epoch 1, batch \d of 5", raised)
    assert re.search(r"- batch \d, example \d: a_xf=nan, label=", raised)
    assert "all features of these" in training.log


def test_a_killed_worker_does_not_change_the_result(training, uninterrupted):
    training.start(**WORKERS)
    training.wait_until_it_waits()
    training.process("worker 1").kill()
    assert training.end() == "done"
    (note,) = training.notes
    assert note.startswith("worker 1 was killed by signal 9")
    assert "restored: training resumes with epoch 2 of 3" in training.log
    same_history(training, uninterrupted)


def test_a_stopped_training_resumes_after_the_same_step(training, uninterrupted):
    training.start(**WORKERS)
    training.wait_until_it_waits()
    os.kill(training.pid, signal.SIGTERM)
    time.sleep(0.5)
    training.go_on()
    asked = time.monotonic()
    assert training.end() == "interrupted"
    assert time.monotonic() - asked < 30
    assert "stopped: training resumes with epoch 2 of 3, after batch" in training.log
    training.start(**WORKERS)
    assert training.end() == "done"
    assert "restored: training resumes with epoch 2 of 3, after batch" in training.log
    np.testing.assert_allclose(
        training.history["val_loss"], uninterrupted.history["val_loss"], rtol=1e-4
    )


@pytest.mark.acceptance
@pytest.mark.parametrize("in_collective", [False, True])
def test_a_hanging_worker_is_killed(training, uninterrupted, in_collective):
    training.start(**WORKERS, stalled_after_s=30)
    training.wait_until_it_waits()
    training.process("worker 1").suspend()
    if in_collective:
        training.go_on()
    else:
        # Nothing of TensorFlow waits for the worker: only the watchdog can see it.
        training.wait_for(lambda: bool(training.notes))
        training.go_on()
    assert training.end() == "done"
    (note,) = training.notes
    killed = note.startswith("worker 1 made no progress for 30 s (stopped)")
    # In a collective, whichever is first: the watchdog, or TensorFlow's own heartbeats.
    assert killed or (in_collective and "UnavailableError" in note)
    assert note.endswith("restart 1 of 3: all processes restart")
    same_history(training, uninterrupted)


@pytest.mark.acceptance
def test_no_worker_outlives_the_node(training):
    training.start(**WORKERS)
    training.wait_until_it_waits()
    children = psutil.Process(training.pid).children()
    os.kill(training.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_training_goes_on_without_a_worker_of_parameter_servers(training):
    training.start(**SERVERS)
    training.wait_until_it_waits()
    training.process("worker 1").kill()
    training.go_on()
    assert training.end() == "done"
    (note,) = training.notes
    assert note.startswith("worker 1 was killed by signal 9")
    assert "its process restarts" in note
    assert "restored" not in training.log
    assert (training.folder / "model" / "saved_model.pb").is_file()


@pytest.mark.acceptance
def test_after_a_killed_parameter_server_training_resumes(training):
    training.start(**SERVERS)
    training.wait_until_it_waits()
    training.process("parameter server 0").kill()
    assert training.end() == "done"
    (note,) = training.notes
    assert note.startswith("parameter server 0 was killed by signal 9")
    assert "restored: training resumes with epoch 2 of 3" in training.log
