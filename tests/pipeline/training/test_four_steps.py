"""Data, build, fit and export, called one by one as a tuner calls them."""

from __future__ import annotations

import json
import math
import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.tf


def test_the_model_run_has_readable_json_and_no_optimizer(tmp_path):
    import h5py
    import tensorflow as tf

    from pipeline.training.export import write_model_run

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile("adam", "mse")
    model.fit(tf.ones([4, 1]), tf.ones([4, 1]), verbose=0)
    write_model_run(model, {"loss": [math.nan, 0.5]}, str(tmp_path / "run"))
    assert json.loads((tmp_path / "run/history.json").read_text()) == {
        "loss": [None, 0.5]
    }
    with h5py.File(tmp_path / "run/model.weights.h5") as file:
        names: list[str] = []
        file.visit(names.append)
    assert "layers/dense/vars/0" in names
    assert not [name for name in names if "optimizer" in name]


def test_a_service_gives_a_training_its_checkpoints_again(monkeypatch):
    from pipeline.training.run_fn import own_checkpoints

    def folder(run: int, **changed: Any) -> str | None:
        fn_args = SimpleNamespace(
            custom_config={"checkpoints": "gs://bucket/checkpoints", "train": {}},
            transform_graph_path="gs://bucket/graph",
            train_files=["gs://bucket/train-*"],
            eval_files=["gs://bucket/eval-*"],
            model_run_dir=f"gs://bucket/{run}/run",
            base_model=None,
            hyperparameters=None,
        )
        fn_args.__dict__.update(changed)
        return own_checkpoints(fn_args)

    monkeypatch.delenv("SLUICE_CHECKPOINT_DIR", raising=False)
    first = folder(7)
    assert first is not None and first.startswith("gs://bucket/checkpoints/")
    assert folder(8) == first
    assert folder(8, train_files=["gs://bucket/8/train-*"]) != first
    assert folder(8, hyperparameters={"values": {}}) != first
    assert folder(8, transform_graph_path="gs://bucket/8/graph") != first
    monkeypatch.setenv("SLUICE_CHECKPOINT_DIR", "/kept")
    assert folder(7) is None, "the runner has chosen one"


def test_a_worker_of_another_machine_waits_for_the_model_of_the_chief(tmp_path):
    from pipeline.training.run_fn import wait_for_model

    model = tmp_path / "model"
    threading.Timer(0.2, model.mkdir).start()
    wait_for_model(str(model))
    assert model.is_dir()
