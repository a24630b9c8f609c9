"""Trainings that are stopped or killed by real signals, and what they leave."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sample_data.tf_example import encode
from sluice import progress
from sluice.tfrecords import tfrecord
from tests.kit.forked_command import call_as_node

ONE_TRAINING = "tests.pipeline.training.resume.one_training"
EPOCHS = 5
# 79 examples in batches of 8.
STEPS_PER_EPOCH = 10


@dataclass(frozen=True)
class Work:
    """The folder of a training, which is resumed there."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def log(self) -> str:
        return (self.path / "log").read_text()

    @property
    def history(self) -> dict[str, list[float]]:
        return json.loads((self.path / "out/run/history.json").read_text())

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads((self.path / "out/run/training.json").read_text())

    @property
    def weights(self) -> dict[str, Any]:
        """Returns the model's weights by name."""
        import h5py

        found: dict[str, Any] = {}

        def take(name: str, item: Any) -> None:
            if name.startswith("layers") and isinstance(item, h5py.Dataset):
                found[name] = item[()].tolist()

        with h5py.File(self.path / "out/run/model.weights.h5") as file:
            file.visititems(take)
        return found

    def events(self, event: str) -> list[dict[str, Any]]:
        """Returns the progress reports of a kind."""
        lines, _ = progress.read(self.path / "progress.jsonl")
        return [line for line in lines if line["event"] == event]

    def lines(self, event: str) -> list[str]:
        """Returns the texts of the progress reports of a kind."""
        return [line["line"] for line in self.events(event)]

    @property
    def epochs(self) -> list[int]:
        """Returns the numbers of the epochs that were reported."""
        return [line["epoch"] for line in self.events("epoch")]


class Trainings:
    """Trains in processes forked from one that has imported TFX."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def run(self, work: Path, train: dict[str, Any] | None = None, **facts: Any) -> int:
        """Trains in ``work``; returns the exit code, or minus a signal.

        Args:
          work: for checkpoints, progress, log and output.
          train: keys of the config's section ``train``.
          **facts: see below.
        """
        work.mkdir(exist_ok=True)
        job = {
            "work": str(work),
            "data": str(self._data),
            "train": {"epochs": EPOCHS, **(train or {})},
            "checkpoints": True,
            "model": "build_model",  # a function of one_training
            "label": "y",  # or z, of a regression
            "signal": int(signal.SIGTERM),
            # The batch at which the training gets the signal; of train, of eval.
            "at_step": None,
            "at_eval_step": None,
            "export": "none",
            # Section of the config, to search instead of training.
            "tune": None,
            # The steps between checkpoints within an epoch.
            "save_every": 1000,
            **facts,
        }
        process = multiprocessing.get_context("forkserver").Process(
            target=call_as_node,
            args=(f"{ONE_TRAINING}:run", dict(os.environ), work / "log", job),
        )
        process.start()
        process.join()
        assert process.exitcode is not None
        return process.exitcode

    @staticmethod
    def folder(work: Path) -> Work:
        """Returns what a training has left."""
        return Work(work)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples in shards, which a model can learn in part."""
    folder = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(3)
    shards = {"train-0": 30, "train-1": 30, "train-2": 19, "eval-0": 20}
    for name, records in shards.items():
        rows = random.normal(size=(records, 4))
        labels = (rows[:, 0] + random.normal(size=records) > 0).astype(int)
        examples = [
            encode(
                {
                    "a": row.tolist(),
                    "y": [int(label)],
                    "z": (1000 + 50 * row[::-1]).tolist(),
                }
            )
            for row, label in zip(rows, labels, strict=True)
        ]
        tfrecord.write(folder / f"{name}.gz", examples)
    return folder


@pytest.fixture(scope="session")
def trainings(server: None, data: Path) -> Trainings:
    return Trainings(data)
