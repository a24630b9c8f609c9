"""Data, build, fit and export, called one by one as a tuner calls them."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sample_data.tf_example import encode
from serving.predictor import Predictor
from sluice import interrupt
from sluice.tfrecords import tfrecord
from tests.kit.trainings import files_in, settings
from tests.kit.transform_output import FEATURES, Output

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Examples whose label is whether ``a`` is positive."""
    directory = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(5)
    for name, count in {"train": 64, "eval": 32}.items():
        values = random.normal(size=count)
        tfrecord.write(
            directory / f"{name}.gz",
            [encode({"a_xf": [float(a)], "y_xf": [int(a > 0)]}) for a in values],
        )
    return directory


def test_a_grid_search_takes_the_best_model(data, tmp_path):
    from pipeline.training.build import build_model, model_inputs
    from pipeline.training.compile import compile_model
    from pipeline.training.export import export_model
    from pipeline.training.fit import fit_model
    from pipeline.training.input.training_input import make_input
    from pipeline.training.strategy.distribution import choose_distribution

    distribution = choose_distribution(settings(batch_size=16))
    training_input = make_input(
        settings(seed=1),
        files_in(data),
        FEATURES,
        Output(),
        distribution,
    )

    def attempt(learning_rate: float) -> tuple[float, Any]:
        inputs = model_inputs(FEATURES, Output())
        model = build_model(
            "pipeline.training.models.dense:build_model",
            {"hidden_units": [4], "dropout": 0.0},
            inputs,
            distribution,
            seed=1,
        )
        compile_model(
            model,
            settings(epochs=3, learning_rate=learning_rate),
            FEATURES.label,
            steps_per_epoch=training_input.steps_per_epoch,
            distribution=distribution,
        )
        history = fit_model(model, training_input, 3)
        assert {len(values) for values in history.values()} == {3}
        return history["val_loss"][-1], model

    attempts = {rate: attempt(rate) for rate in (1e-5, 0.1)}
    assert attempts[0.1][0] < 0.5 * attempts[1e-5][0]
    assert attempt(0.1)[0] == pytest.approx(attempts[0.1][0]), "it is reproducible"

    export_model(attempts[0.1][1], str(tmp_path / "model"), FEATURES, Output())
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a": 2.0}\n{"a": -2.0}\n')
    labels = [
        item.label for item in Predictor(tmp_path / "model").predict_files([rows])
    ]
    assert labels == ["1", "0"]


def test_the_model_run_has_readable_json(tmp_path):
    from pipeline.training.build import build_model, model_inputs
    from pipeline.training.export import write_model_run
    from pipeline.training.strategy.distribution import choose_distribution

    model = build_model(
        "pipeline.training.models.dense:build_model",
        {},
        model_inputs(FEATURES, Output()),
        choose_distribution(settings()),
    )
    write_model_run(model, {"loss": [math.nan, 0.5]}, str(tmp_path / "run"))
    assert json.loads((tmp_path / "run/history.json").read_text()) == {
        "loss": [None, 0.5]
    }
    assert (tmp_path / "run/model.weights.h5").is_file()


def test_a_service_gives_a_training_its_checkpoints_again(monkeypatch):
    from pipeline.training.run_fn import _own_checkpoints

    def folder(run: int, **changed: Any) -> str | None:
        fn_args = SimpleNamespace(
            custom_config={"checkpoints": "gs://bucket/checkpoints", "train": {}},
            transform_graph_path="gs://bucket/graph",
            train_files=["gs://bucket/train-*"],
            eval_files=["gs://bucket/eval-*"],
            model_run_dir=f"gs://bucket/{run}/run",
            base_model=None,
        )
        fn_args.__dict__.update(changed)
        return _own_checkpoints(fn_args)

    monkeypatch.delenv(interrupt.CHECKPOINT_DIR, raising=False)
    first = folder(7)
    assert first is not None and first.startswith("gs://bucket/checkpoints/")
    assert folder(8) == first
    assert folder(8, train_files=["gs://bucket/8/train-*"]) != first
    assert folder(8, transform_graph_path="gs://bucket/8/graph") != first
    monkeypatch.setenv(interrupt.CHECKPOINT_DIR, "/kept")
    assert folder(7) is None, "the runner has chosen one"


def test_a_worker_of_another_machine_waits_for_the_model_of_the_chief(tmp_path):
    from pipeline.training.run_fn import wait_for_model

    model = tmp_path / "model"
    threading.Timer(0.2, model.mkdir).start()
    wait_for_model(str(model))
    assert model.is_dir()
