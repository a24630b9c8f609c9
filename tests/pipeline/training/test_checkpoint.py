"""Training that is stopped or killed by real signals, and resumes in a new process."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sample_data.tf_example import encode
from sluice import progress
from sluice.project import own_root
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

DONE, STOPPED = 0, 42
EPOCHS, BATCHES, EVAL_BATCHES = 5, 10, 3

# Imports TensorFlow once, and forks a process per training, as the local runner does.
ZYGOTE = f'''
import contextlib, json, os, signal, sys, types
from types import SimpleNamespace
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from sluice.compat import prepare_environment
prepare_environment()
import tensorflow as tf
from pipeline.training import checkpoint
from pipeline.training import run_fn as training
from pipeline.config.feature_set import Feature, FeatureSet, Label
from pipeline.config.train import Train
from sluice import interrupt

FEATURES = FeatureSet((Feature("a", "numeric"),), Label("y", (0, 1)))


class Output:
    """The parts of TFTransformOutput that training uses; a becomes a_xf as it is."""

    def __init__(self, path):
        pass

    def transformed_feature_spec(self):
        return {{
            "a_xf": tf.io.FixedLenFeature([4], tf.float32),
            "y_xf": tf.io.FixedLenFeature([1], tf.int64),
        }}

    def raw_feature_spec(self):
        return {{
            "a": tf.io.FixedLenFeature([4], tf.float32),
            "y": tf.io.FixedLenFeature([1], tf.int64),
        }}

    @property
    def raw_metadata(self):
        schema = text_format.Parse(
            "feature {{ name: 'a' type: FLOAT shape {{ dim {{ size: 4 }} }} }}"
            "feature {{ name: 'y' type: INT shape {{ dim {{ size: 1 }} }} }}",
            schema_pb2.Schema(),
        )
        return SimpleNamespace(schema=schema)

    def transform_features_layer(self):
        return lambda raw: {{"a_xf": raw["a"]}}


class Tripwire(tf.keras.layers.Layer):
    """Sends this process a signal in the given step of training or of validation."""

    @tf.autograph.experimental.do_not_convert
    def call(self, x, training=None):
        job = types.SimpleNamespace(**JOB)
        counter, at = ("train", job.at_step) if training else ("eval", job.at_eval_step)

        def count(x):
            COUNTS[counter] = COUNTS.get(counter, 0) + 1
            if COUNTS[counter] == at:
                os.kill(os.getpid(), job.signal)

        if at:
            tf.py_function(count, [x], [])  # fed by the data: once per batch
        return tf.identity(x)


def build_model(inputs, params):
    keras_inputs = inputs.keras_inputs()
    x = Tripwire()(keras_inputs["a_xf"])
    x = tf.keras.layers.Dense(8, activation="relu")(x)
    x = tf.keras.layers.BatchNormalization()(x)
    return tf.keras.Model(keras_inputs, inputs.output_layer()(x))


def train(job):
    global JOB, COUNTS
    JOB, COUNTS = job, {{}}
    os.environ["SLUICE_PROGRESS_FILE"] = job["work"] + "/progress.jsonl"
    if job["checkpoints"]:
        os.environ[interrupt.CHECKPOINT_DIR] = job["work"] + "/checkpoints"
    checkpoint.SHARE_OF_TIME = job["share_of_time"]
    checkpoint.LONG_EPOCH_S = job["long_epoch_s"]
    training.tft = types.SimpleNamespace(TFTransformOutput=Output)
    tf.config.experimental.enable_op_determinism()
    if job["export"] == "killed":
        training.export_model = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
    elif job["export"] == "none":
        training.export_model = lambda *a, **k: None
    log = os.open(job["work"] + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    interrupt.listen()
    stopping = {{"patience": job["patience"]}} if job["patience"] else None
    training.run_fn(types.SimpleNamespace(
        custom_config={{
            "train": Train.model_validate({{
                "replicas": job["replicas"],
                "epochs": job["epochs"],
                "batch_size": 8,
                "learning_rate": job["learning_rate"],
                "early_stopping": stopping,
            }}).model_dump(),
            "feature_set": FEATURES.to_dict(),
            "model": "__main__:build_model",
            "model_params": {{}},
            "own_preprocessing": False,
        }},
        transform_graph_path="",
        train_files=[job["data"] + "/train-*"],
        eval_files=[job["data"] + "/eval-*"],
        model_run_dir=job["out"] + "/model_run",
        serving_model_dir=job["out"] + "/serving",
    ))


for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            train(json.loads(line))
            os._exit({DONE})
        except interrupt.Interrupted:
            os._exit({STOPPED})
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
'''


class Trainings:
    """Trains in processes forked from one that has imported TensorFlow."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._zygote = subprocess.Popen(
            [sys.executable, "-c", ZYGOTE],
            cwd=own_root(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._pid: int | None = None

    def start(self, work: Path, **facts: Any) -> None:
        """Starts a training whose checkpoints, progress and log lie in ``work``."""
        if self._pid is not None:  # Left by a test that has failed.
            self.kill()
            self.wait()
        work.mkdir(exist_ok=True)
        job = {
            "work": str(work),
            "data": str(self._data),
            "out": str(work / "out"),
            "checkpoints": True,
            "epochs": EPOCHS,
            "learning_rate": 0.01,
            "patience": None,
            "replicas": None,
            "signal": int(signal.SIGTERM),
            "at_step": None,
            "at_eval_step": None,
            "export": "none",
            "share_of_time": 1e9,  # each epoch is saved, however short it is
            "long_epoch_s": 1e9,
            **facts,
        }
        print(json.dumps(job), file=self._zygote.stdin, flush=True)
        self._pid = int(self._line())

    def kill(self) -> None:
        """Kills the training that was started, unless it has ended."""
        assert self._pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """Returns the exit code of the training that was started, or minus a signal."""
        self._pid = None
        return int(self._line())

    def run(self, work: Path, **facts: Any) -> int:
        self.start(work, **facts)
        return self.wait()

    def close(self) -> None:
        self._zygote.communicate(timeout=30)

    def _line(self) -> str:
        assert self._zygote.stdout is not None
        return self._zygote.stdout.readline()


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    data = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(3)
    shards = {"train-0": 30, "train-1": 30, "train-2": 19, "eval-0": 20}
    for name, records in shards.items():
        rows = random.normal(size=(records, 4))
        labels = (rows[:, 0] + random.normal(size=records) > 0).astype(int)
        examples = [
            encode({"a_xf": row.tolist(), "y_xf": [int(label)]})
            for row, label in zip(rows, labels, strict=True)
        ]
        tfrecord.write(data / f"{name}.gz", examples)
    started = Trainings(data)
    yield started
    started.close()


@pytest.fixture(scope="module")
def whole(trainings: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nothing happened to, without checkpoints."""
    work = tmp_path_factory.mktemp("whole")
    assert trainings.run(work, checkpoints=False, export="real") == DONE, (
        work / "log"
    ).read_text()
    assert not (work / "checkpoints").exists()
    return work


@pytest.fixture(scope="module")
def stopped(trainings: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was stopped in its fourth epoch. Tests take a copy."""
    work = tmp_path_factory.mktemp("stopped")
    assert trainings.run(work, at_step=3 * BATCHES + 4) == STOPPED
    assert _newest(work).name == "ckpt-4"
    return work


def _history(work: Path) -> dict[str, list[float]]:
    return json.loads((work / "out/model_run/history.json").read_text())


def _weights(work: Path) -> dict[str, list[Any]]:
    import h5py

    found = {}

    def take(name: str, item: Any) -> None:
        if name.startswith("layers") and isinstance(item, h5py.Dataset):
            found[name] = item[()].tolist()

    with h5py.File(work / "out/model_run/model.weights.h5") as file:
        file.visititems(take)
    assert len(found) == 8, "two dense layers and a batch normalization"
    return found


def _events(work: Path, event: str) -> list[dict[str, Any]]:
    lines, _ = progress.read(work / "progress.jsonl")
    return [line for line in lines if line["event"] == event]


def _epochs(work: Path) -> list[tuple[int, int]]:
    return [(line["epoch"], line["epochs"]) for line in _events(work, "epoch")]


def _newest(work: Path) -> Path:
    """Returns the newest checkpoint's path without its endings."""
    indexes = (work / "checkpoints").glob("ckpt-*.index")
    newest = max(indexes, key=lambda path: int(path.stem.partition("-")[2]))
    return newest.with_suffix("")


EACH_ONCE = [(epoch, EPOCHS) for epoch in range(1, EPOCHS + 1)]


def test_training_with_checkpoints_gives_the_same_weights(
    trainings: Trainings, whole: Path, tmp_path: Path
) -> None:
    assert trainings.run(tmp_path) == DONE
    assert _weights(tmp_path) == _weights(whole)
    assert _history(tmp_path) == _history(whole)
    assert _epochs(tmp_path) == EACH_ONCE
    kept = sorted(path.name for path in (tmp_path / "checkpoints").glob("*.index"))
    assert kept == ["ckpt-4.index", "ckpt-5.index"]


@pytest.mark.fault
def test_a_stop_within_an_epoch_costs_nothing(
    trainings: Trainings, whole: Path, tmp_path: Path
) -> None:
    assert trainings.run(tmp_path, at_step=2 * BATCHES + 4) == STOPPED
    assert _epochs(tmp_path) == EACH_ONCE[:2]
    (stopped,) = _events(tmp_path, "stopped")
    assert (
        stopped["line"] == "stopped: training resumes with epoch 3 of 5, after batch 4"
    )
    assert trainings.run(tmp_path) == DONE
    (restored,) = _events(tmp_path, "restored")
    assert restored == {
        "event": "restored",
        "line": "restored: training resumes with epoch 3 of 5, after batch 4",
        "epoch": 2,
        "epochs": 5,
    }
    assert restored["line"] in (tmp_path / "log").read_text()
    assert _epochs(tmp_path) == EACH_ONCE
    assert _weights(tmp_path) == _weights(whole)
    history, expected = _history(tmp_path), _history(whole)
    assert {name: len(values) for name, values in history.items()} == {
        name: EPOCHS for name in expected
    }
    for name, values in expected.items():
        if not name.startswith("val_"):
            history[name][2] = values[2]  # of the six batches after the cut
    assert history == expected


@pytest.mark.fault
def test_a_kill_costs_the_epoch(
    trainings: Trainings, whole: Path, tmp_path: Path
) -> None:
    kill = {"signal": int(signal.SIGKILL), "at_step": 3 * BATCHES + 4}
    assert trainings.run(tmp_path, **kill) == -signal.SIGKILL
    assert trainings.run(tmp_path) == DONE
    (restored,) = _events(tmp_path, "restored")
    assert restored["line"] == "restored: training resumes with epoch 4 of 5"
    assert _epochs(tmp_path) == EACH_ONCE
    assert _weights(tmp_path) == _weights(whole)
    assert _history(tmp_path) == _history(whole)


@pytest.mark.fault
def test_a_long_epoch_is_saved_in_its_middle(
    trainings: Trainings, whole: Path, tmp_path: Path
) -> None:
    kill = {"signal": int(signal.SIGKILL), "at_step": 8, "long_epoch_s": 0.0}
    assert trainings.run(tmp_path, **kill) == -signal.SIGKILL
    assert trainings.run(tmp_path) == DONE
    (restored,) = _events(tmp_path, "restored")
    assert restored["line"] == (
        "restored: training resumes with epoch 1 of 5, after batch 7"
    )
    assert _weights(tmp_path) == _weights(whole)


@pytest.mark.fault
def test_a_stop_in_validation_does_not_wait_for_its_end(
    trainings: Trainings, tmp_path: Path
) -> None:
    at = EVAL_BATCHES + 2
    assert trainings.run(tmp_path, at_eval_step=at) == STOPPED
    (stopped,) = _events(tmp_path, "stopped")
    assert (
        stopped["line"] == "stopped: training resumes with epoch 2 of 5, after batch 10"
    )
    assert trainings.run(tmp_path) == DONE
    assert _epochs(tmp_path) == EACH_ONCE
    assert {len(values) for values in _history(tmp_path).values()} == {EPOCHS}


@pytest.mark.fault
def test_early_stopping_is_restored(trainings: Trainings, tmp_path: Path) -> None:
    common = {"patience": 3, "learning_rate": 0.3, "epochs": 40}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert trainings.run(whole, **common) == DONE
    losses = _history(whole)["val_loss"]
    best = losses.index(min(losses))
    assert len(losses) == best + 1 + 3, "stops 3 epochs after the best"
    # In the second epoch after the best one: what was best lies before the stop.
    at_step = (best + 2) * BATCHES + 5
    assert trainings.run(cut, at_step=at_step, **common) == STOPPED
    # Killed after training, which is then not done again.
    assert trainings.run(cut, export="killed", **common) == -signal.SIGKILL
    assert trainings.run(cut, **common) == DONE
    assert _events(cut, "restored")[1]["line"] == "restored: training is complete"
    assert len(_epochs(cut)) == len(losses)
    assert _history(cut)["val_loss"] == losses
    assert _weights(cut) == _weights(whole)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("suffix", "fraction"),
    [(".index", 0.6), (".data-00000-of-00001", 0.0), (".data-00000-of-00001", 0.6)],
)
def test_a_truncated_checkpoint_falls_back_to_the_one_before(
    trainings: Trainings,
    whole: Path,
    stopped: Path,
    tmp_path: Path,
    suffix: str,
    fraction: float,
) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    newest = _newest(tmp_path)
    path = newest.with_name(newest.name + suffix)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * fraction)])
    assert trainings.run(tmp_path) == DONE
    (damaged,) = _events(tmp_path, "checkpoint_damaged")
    assert damaged["line"].startswith("checkpoint ckpt-4 is damaged and not used: ")
    (restored,) = _events(tmp_path, "restored")
    assert restored["line"] == "restored: training resumes with epoch 4 of 5"
    assert _weights(tmp_path) == _weights(whole)
    assert _history(tmp_path) == _history(whole)


@pytest.mark.fault
def test_without_an_intact_checkpoint_training_starts_again(
    trainings: Trainings, whole: Path, stopped: Path, tmp_path: Path
) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "checkpoints").iterdir():
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert trainings.run(tmp_path) == DONE
    assert len(_events(tmp_path, "checkpoint_damaged")) == 2
    assert _events(tmp_path, "restored") == []
    assert _epochs(tmp_path) == EACH_ONCE[:3] + EACH_ONCE
    assert _weights(tmp_path) == _weights(whole)
    assert _history(tmp_path) == _history(whole)


@pytest.mark.fault
def test_after_kills_each_epoch_is_reported_once(
    trainings: Trainings, whole: Path, tmp_path: Path
) -> None:
    log = tmp_path / "progress.jsonl"
    for kill_after_s in (0.0, 0.01, 0.02):
        _, offset = progress.read(log)
        trainings.start(tmp_path, long_epoch_s=0.0)
        _wait_for(functools.partial(_epoch_since, log, offset))
        time.sleep(kill_after_s)
        trainings.kill()
        if trainings.wait() == DONE:
            break
    assert trainings.run(tmp_path) == DONE
    assert {len(values) for values in _history(tmp_path).values()} == {EPOCHS}


@pytest.mark.fault
def test_replicas_resume_together(trainings: Trainings, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    common = {"replicas": 2, "epochs": 2}
    assert trainings.run(whole, **common) == DONE
    # Each replica counts.
    assert trainings.run(cut, at_step=2 * (BATCHES + 4), **common) == STOPPED
    (stopped,) = _events(cut, "stopped")
    assert (
        stopped["line"] == "stopped: training resumes with epoch 2 of 2, after batch 4"
    )
    assert trainings.run(cut, **common) == DONE
    assert _epochs(cut) == [(1, 2), (2, 2)]
    weights, expected = _weights(cut), _weights(whole)
    for name in expected:
        # Replicas have moving averages of their own, of which the mean is saved.
        assert np.array(weights[name]) == pytest.approx(np.array(expected[name])), name


def test_short_epochs_are_not_all_saved(trainings: Trainings, tmp_path: Path) -> None:
    assert trainings.run(tmp_path, share_of_time=1e-9) == DONE
    # The first, whose cost is not known yet, and the last.
    assert _newest(tmp_path).name == "ckpt-2"


@pytest.mark.fault
def test_training_continues_without_a_writable_checkpoint(
    trainings: Trainings, whole: Path, tmp_path: Path
) -> None:
    (tmp_path / "checkpoints").write_text("a file where the directory should be")
    assert trainings.run(tmp_path) == DONE
    assert (
        "checkpoint not saved: " in _events(tmp_path, "checkpoint_not_saved")[0]["line"]
    )
    assert _weights(tmp_path) == _weights(whole)


def _epoch_since(path: Path, offset: int) -> bool:
    lines, _ = progress.read(path, offset)
    return any(line["event"] == "epoch" for line in lines)


def _wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.001)
