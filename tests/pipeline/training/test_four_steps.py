"""Data, build, fit and export, called one by one as a tuner calls them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.config.train import EarlyStopping, Train
from sample_data.tf_example import encode
from serving.predictor import Predictor
from sluice import interrupt
from sluice.tfrecords import tfrecord
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
    from pipeline.training.build import (
        ModelSettings,
        build_model,
        model_inputs,
    )
    from pipeline.training.compile import CompileSettings, compile_model
    from pipeline.training.export import ExportSettings, export_model
    from pipeline.training.fit import FitSettings, fit_model
    from pipeline.training.input.training_input import InputSettings, make_input
    from pipeline.training.strategy.distribution import (
        choose_distribution,
    )

    distribution = choose_distribution(Train(batch_size=16))
    training_input = make_input(
        InputSettings([f"{data}/train*"], [f"{data}/eval*"], seed=1),
        FEATURES,
        Output(),
        distribution,
    )
    settings = ModelSettings(
        "pipeline.training.models.dense:build_model",
        params={"hidden_units": [4], "dropout": 0.0},
        seed=1,
    )

    def attempt(learning_rate: float) -> tuple[float, Any]:
        inputs = model_inputs(FEATURES, Output())
        model = build_model(settings, inputs, distribution)
        compile_model(
            model,
            CompileSettings(epochs=3, learning_rate=learning_rate),
            FEATURES.label,
            steps_per_epoch=training_input.steps_per_epoch,
            distribution=distribution,
        )
        history = fit_model(model, training_input, FitSettings(epochs=3))
        assert {len(values) for values in history.values()} == {3}
        return history["val_loss"][-1], model

    attempts = {rate: attempt(rate) for rate in (1e-5, 0.1)}
    assert attempts[0.1][0] < 0.5 * attempts[1e-5][0]
    assert attempt(0.1)[0] == pytest.approx(attempts[0.1][0]), "it is reproducible"

    export_model(
        attempts[0.1][1], ExportSettings(str(tmp_path / "model")), FEATURES, Output()
    )
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a": 2.0}\n{"a": -2.0}\n')
    labels = [
        item.label for item in Predictor(tmp_path / "model").predict_files([rows])
    ]
    assert labels == ["1", "0"]


def test_the_model_run_has_readable_json(tmp_path):
    from pipeline.training.build import ModelSettings, build_model, model_inputs
    from pipeline.training.export import write_model_run
    from pipeline.training.strategy.distribution import (
        choose_distribution,
    )

    settings = ModelSettings("pipeline.training.models.dense:build_model")
    model = build_model(
        settings,
        model_inputs(FEATURES, Output()),
        choose_distribution(Train()),
    )
    write_model_run(model, {"loss": [math.nan, 0.5]}, str(tmp_path / "run"))
    assert json.loads((tmp_path / "run/history.json").read_text()) == {
        "loss": [None, 0.5]
    }
    assert (tmp_path / "run/history.csv").read_text() == "epoch,loss\n1,\n2,0.5\n"
    assert (tmp_path / "run/model.weights.h5").is_file()


def _fn_args(root: str) -> SimpleNamespace:
    """Returns what TFX gives a training whose artifacts are below a root."""
    return SimpleNamespace(
        custom_config={
            "train": Train.model_validate(
                {"epochs": 7, "batch_size": 8, "early_stopping": {"patience": 2}}
            ).model_dump(),
            "feature_set": FEATURES.to_dict(),
            "model": "my_models:build_model",
            "model_params": {"units": 3},
            "own_preprocessing": True,
        },
        transform_graph_path=f"{root}/graph",
        train_files=[f"{root}/train-*"],
        eval_files=[f"{root}/eval-*"],
        model_run_dir=f"{root}/run",
        serving_model_dir=f"{root}/serving",
        base_model=f"{root}/base",
    )


def test_settings_are_parsed_from_what_tfx_gives(tmp_path, monkeypatch):
    from pipeline.training.run_fn import TrainingSettings

    fn_args = _fn_args(str(tmp_path))
    monkeypatch.delenv(interrupt.CHECKPOINT_DIR, raising=False)
    settings = TrainingSettings.from_fn_args(fn_args)
    assert settings.feature_set == FEATURES
    assert settings.input.seed == settings.model.seed == 17
    assert settings.model.params == {"units": 3}
    assert settings.fit.epochs == 7
    assert settings.callbacks.early_stopping == EarlyStopping(patience=2).model_dump()
    assert settings.compile.epochs == 7
    assert settings.fit.checkpoint_dir is None
    assert settings.callbacks.tensorboard_dir == str(tmp_path / "run/tensorboard")
    assert settings.export.all_raw_features

    fn_args.custom_config["train"]["early_stopping"] = None
    monkeypatch.setenv(interrupt.CHECKPOINT_DIR, str(tmp_path / "kept"))
    settings = TrainingSettings.from_fn_args(fn_args)
    assert settings.callbacks.early_stopping is None
    assert settings.fit.checkpoint_dir == str(tmp_path / "kept")


def test_a_service_gives_a_training_its_checkpoints_again(monkeypatch):
    from pipeline.training.run_fn import TrainingSettings

    def folder(**changed: Any) -> str | None:
        fn_args = _fn_args("gs://bucket/7")
        fn_args.custom_config["checkpoints"] = "gs://bucket/checkpoints"
        fn_args.__dict__.update(changed)
        return TrainingSettings.from_fn_args(fn_args).fit.checkpoint_dir

    monkeypatch.delenv(interrupt.CHECKPOINT_DIR, raising=False)
    first = folder()
    assert first is not None and first.startswith("gs://bucket/checkpoints/")
    assert folder(model_run_dir="gs://bucket/8/run") == first
    assert folder(train_files=["gs://bucket/8/train-*"]) != first
    assert folder(transform_graph_path="gs://bucket/8/graph") != first
    monkeypatch.setenv(interrupt.CHECKPOINT_DIR, "/kept")
    assert folder() == "/kept"


def test_addresses_of_buckets_are_kept(monkeypatch):
    from pipeline.training.run_fn import TrainingSettings

    monkeypatch.setenv(interrupt.CHECKPOINT_DIR, "gs://bucket/checkpoints")
    text = str(asdict(TrainingSettings.from_fn_args(_fn_args("gs://bucket"))))
    names = ("graph", "train-*", "eval-*", "run", "serving", "base", "checkpoints")
    for name in (*names, "run/tensorboard"):
        assert f"'gs://bucket/{name}'" in text
    assert "gs:/b" not in text
