"""Trainings of several processes, which are killed or asked to stop."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
from typing import Any

import numpy as np
import psutil
import pytest

from pipeline.config.train import Train
from sample_data.tf_example import encode
from sluice import progress
from sluice.tfrecords import tfrecord
from tests.kit.forked_command import call_as_node
from tests.kit.wait import DEADLINE_S, wait_for

pytestmark = [pytest.mark.fault, pytest.mark.tf, pytest.mark.acceptance]

WORKERS: dict[str, Any] = {"processes": 2}
SERVERS = {**WORKERS, "strategy": "parameter_server", "parameter_servers": 1}


class Training:
    """A training in a process like a node's, in two files per split."""

    def __init__(self, folder, label="y"):
        self.folder = folder
        self._label = label
        self._process: Any = None
        random = np.random.default_rng(5)
        counts = {"train-0": 48, "train-1": 48, "eval-0": 16, "eval-1": 16}
        for name, count in counts.items():
            values = random.normal(size=count)
            tfrecord.write(
                folder / f"{name}.gz",
                [
                    encode({"a": [a], "y": [int(a > 0)], "z": [100 + 5 * a]})
                    for a in values.tolist()
                ],
            )

    def start(self, waits=True, **settings):
        """Starts it, or a second attempt; it waits in its second epoch."""
        wait = {
            "function": "tests.kit.train_pairs:Wait",
            "params": {"folder": str(self.folder)},
        }
        train = Train.model_validate(
            {
                "epochs": 3,
                "batch_size": 16,
                "callbacks": [wait] if waits else [],
                **settings,
            }
        )
        environment = {
            **os.environ,
            "SLUICE_PROGRESS_FILE": str(self.folder / "progress.jsonl"),
            "SLUICE_CHECKPOINT_DIR": str(self.folder / "checkpoints"),
        }
        (self.folder / "end").unlink(missing_ok=True)
        self._process = multiprocessing.get_context("forkserver").Process(
            target=call_as_node,
            args=(
                "tests.kit.train_pairs:train",
                environment,
                self.folder / "log",
                str(self.folder),
                str(self.folder),
                train.model_dump(),
                self._label,
            ),
        )
        self._process.start()

    @property
    def pid(self):
        return self._process.pid

    def wait_until_it_waits(self):
        """Returns when training is in the middle of its second epoch."""
        waiting = (self.folder / "waiting").exists
        wait_for(lambda: waiting() or not self._process.is_alive(), "the training")
        assert waiting(), self.log

    def process(self, name):
        """Returns one of its processes by what the log calls it."""
        (found,) = (
            child
            for child in psutil.Process(self.pid).children()
            if child.name() == f"sluice:{name}"
        )
        return found

    def end(self):
        """Waits for its end and returns how it ended."""
        self._process.join(DEADLINE_S)
        end = self.folder / "end"
        return end.read_text() if end.exists() else self.log

    @property
    def log(self):
        return (self.folder / "log").read_text()


@pytest.fixture
def training(server, tmp_path):
    return Training(tmp_path)


def test_a_killed_worker_ends_the_training_which_resumes(server, tmp_path):
    """A regression: its scale is that of all examples, also of the other worker."""
    training = Training(tmp_path, "z")
    training.start(**WORKERS)
    training.wait_until_it_waits()
    training.process("worker 1").kill()
    lost = training.end().rpartition("NodeError: ")[2]
    assert lost.startswith("worker 1 was killed by signal 9")
    assert not (training.folder / "model").exists()
    training.start(waits=False, **WORKERS)
    assert training.end() == "done"
    lines, _ = progress.read(training.folder / "progress.jsonl")
    epochs = [line["epoch"] for line in lines if line["event"] == "epoch"]
    assert epochs == [1, 2, 3], "only the one that was not finished is repeated"
    history = json.loads((training.folder / "run/history.json").read_text())
    assert len(history["loss"]) == 3
    assert (training.folder / "model" / "saved_model.pb").is_file()
    assert history["val_mean_absolute_error"][-1] < 10


def test_a_nan_on_one_worker_ends_the_training(training):
    values = [float(i % 5) for i in range(40)]
    values[29] = math.nan
    examples = [encode({"a": [a], "y": [int(a > 2)]}) for a in values]
    tfrecord.write(training.folder / "train-1.gz", examples)
    training.start(waits=False, **WORKERS)
    raised = training.end().rpartition("NodeError: ")[2]
    assert raised.startswith("the loss is nan, so training has stopped")


def test_no_worker_outlives_the_node(training):
    training.start(**WORKERS)
    training.wait_until_it_waits()
    children = psutil.Process(training.pid).children()
    os.kill(training.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_a_killed_parameter_server_ends_the_training_which_resumes(training):
    training.start(**SERVERS)
    training.wait_until_it_waits()
    training.process("ps 0").kill()
    lost = training.end().rpartition("NodeError: ")[2]
    assert lost.startswith("ps 0 was killed by signal 9")
    training.start(waits=False, **SERVERS)
    assert training.end() == "done"
    assert "restored: training resumes with epoch 2 of 3" in training.log
    assert (training.folder / "model" / "saved_model.pb").is_file()
