"""The scale of a regression's label: what sets it, and what must not change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.config.features import FeatureSet
from sample_data.tf_example import encode
from sluice.errors import NodeError
from sluice.tfrecords import tfrecord
from tests.kit.trainings import fn_args, settings
from tests.kit.transform_output import Output

pytestmark = pytest.mark.tf

OUTPUT = Output({"a": "float32", "y": "float32"})
FEATURES = FeatureSet.model_validate(
    {
        "features": {"a": {"kind": "numeric"}},
        "label": {"feature": "y", "task": "regression"},
    }
)
MODEL = "pipeline.training.models.dense:build_model"
MEAN, SLOPE = 1e6, 1e4


def write(folder, labels=lambda a: MEAN + SLOPE * a):
    chance = np.random.default_rng(3)
    for split in ("train", "eval"):
        rows = [
            encode({"a": [float(a)], "y": [float(labels(a))]})
            for a in chance.normal(size=256)
        ]
        tfrecord.write(folder / f"{split}.gz", rows)
    return folder


@pytest.fixture
def train(monkeypatch, tmp_path):
    """Trains a linear model as the Trainer does, alone or with another strategy."""
    import tensorflow as tf

    from pipeline.training import run_fn
    from pipeline.training.strategy.distribution import Distribution

    monkeypatch.setattr(run_fn.tft, "TFTransformOutput", lambda path: OUTPUT)

    def train(data, *, mirrored=False, base_model=None, **given) -> Any:
        args = fn_args({}, FEATURES, MODEL, str(data), str(tmp_path))
        args.base_model = base_model
        strategy = tf.distribute.get_strategy()
        if mirrored:
            strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        section = settings(**{"batch_size": 16, "learning_rate": 0.05, **given})
        model, *_ = run_fn.train_model(
            args,
            section,
            {"hidden_units": [], "dropout": 0.0},
            Distribution(strategy, "mirrored" if mirrored else "one_device", "", 16),
            str(tmp_path / "tensorboard"),
            checkpoint_dir=None,
        )
        return model

    return train


def errors(model) -> float:
    a = np.linspace(-1, 1, 9, dtype=np.float32)[:, None]
    found = model.predict({"a_xf": a}, verbose=0)
    return float(np.max(np.abs(found - (MEAN + SLOPE * a))))


OTHERS: list[dict[str, Any]] = [
    {"mirrored": True, "warm_start": "served"},  # There is none yet.
    {"weight_decay": 1e-3, "optimizer": "AdamW"},
    {
        "fine_tune": {
            "freeze": ["target_s*"],
            "unfreeze_after": 2,
            "learning_rate": 0.05,
        }
    },
]


@pytest.mark.parametrize(
    "given",
    [{}, *(pytest.param(given, marks=pytest.mark.acceptance) for given in OTHERS)],
)
def test_a_large_label_is_learned(train, tmp_path, given):
    from pipeline.training.build import target_scale

    model = train(write(tmp_path), epochs=6, **given)

    scale = target_scale(model)
    assert scale is not None and not scale.trainable_weights
    kernel, mean = scale.get_weights()
    assert mean[0] == pytest.approx(MEAN, rel=2e-3)
    assert kernel[0, 0] == pytest.approx(SLOPE, rel=0.2)
    assert errors(model) < 0.05 * SLOPE


@pytest.mark.acceptance
def test_a_warm_start_keeps_what_was_learned_in_the_scale_of_these_records(
    train, tmp_path
):
    """The label of the model to start from was in another unit."""
    from pipeline.training.build import target_scale
    from pipeline.training.export import export_model

    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    base = train(write(first, lambda a: 10 + a), epochs=6)
    export_model(base, str(tmp_path / "base"), FEATURES, OUTPUT)

    model = train(
        write(second),
        mirrored=True,
        warm_start="served",
        base_model=str(tmp_path / "base"),
        epochs=1,
        learning_rate=1e-9,
    )

    scale = target_scale(model)
    assert scale is not None
    assert scale.get_weights()[1][0] == pytest.approx(MEAN, rel=2e-3)
    assert errors(model) < 0.05 * SLOPE


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (lambda a: 7.5, "256 examples to train is .*7.5.*nothing to learn"),
        (lambda a: a if a < 1 else np.nan, r"\d+ of 256 examples have no number"),
    ],
)
def test_labels_without_a_scale(train, tmp_path, labels, words):
    with pytest.raises(NodeError, match=words) as caught:
        train(write(tmp_path, labels))
    assert "train" in str(caught.value.where)
