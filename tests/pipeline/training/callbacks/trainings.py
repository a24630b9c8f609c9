"""A training of generated examples with callbacks, as ``run_fn`` puts it together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipeline.config.feature_set import Feature, FeatureSet, Label
from pipeline.config.train import Train
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord

FEATURES = FeatureSet(
    (Feature("fare", "numeric"), Feature("income", "numeric")), Label("tip", (0, 1))
)
BATCH, TRAIN, EVAL, SEED = 8, 40, 16, 2


class Output:
    """The part of TFTransformOutput that training uses."""

    def transformed_feature_spec(self) -> dict[str, Any]:
        import tensorflow as tf

        spec = {
            feature.key: tf.io.FixedLenFeature([1], tf.float32)
            for feature in FEATURES.features
        }
        return {**spec, "tip_xf": tf.io.FixedLenFeature([1], tf.int64)}


def write_examples(directory: Path, **not_finite: float) -> Path:
    """Writes examples; those of a split that is named get one value of ``fare``."""
    random = np.random.default_rng(5)
    for split, count in {"train": TRAIN, "eval": EVAL}.items():
        fares, incomes = random.normal(size=(2, count))
        tips = fares > 0
        if split in not_finite:
            fares[3] = not_finite[split]
        rows = zip(fares.tolist(), incomes.tolist(), tips.tolist(), strict=True)
        tfrecord.write(
            directory / f"{split}.gz",
            [
                encode({"fare_xf": [a], "income_xf": [b], "tip_xf": [int(tip)]})
                for a, b, tip in rows
            ],
        )
    return directory


def train(
    data: Path,
    *,
    epochs: int = 4,
    learning_rate: Any = 0.01,
    metrics: Any = (),
    hidden_units: tuple[int, ...] = (),
    strategy: Any = None,
    checkpoint_dir: str | None = None,
    **settings: Any,
) -> tuple[dict[str, list[float]], Any]:
    """Trains; returns the history and the model.

    Args:
      data: as ``write_examples`` writes it.
      epochs: at most so many.
      learning_rate: as in the config.
      metrics: as in the config.
      hidden_units: of the model.
      strategy: as ``Train`` takes it.
      checkpoint_dir: of checkpoints.
      settings: of the callbacks.
    """
    from pipeline.training.build import ModelSettings, build_model, model_inputs
    from pipeline.training.callbacks.make_callbacks import (
        CallbackSettings,
        make_callbacks,
    )
    from pipeline.training.callbacks.non_finite_loss import explaining
    from pipeline.training.compile import CompileSettings, compile_model
    from pipeline.training.fit import FitSettings, fit_model
    from pipeline.training.input.training_input import InputSettings, make_input
    from pipeline.training.strategy.distribution import (
        choose_distribution,
    )

    chosen = Train(batch_size=BATCH, **(strategy or {}))
    distribution = choose_distribution(chosen)
    paths = InputSettings([f"{data}/train*"], [f"{data}/eval*"], seed=SEED)
    training_input = make_input(paths, FEATURES, Output(), distribution)
    model = build_model(
        ModelSettings(
            "pipeline.training.models.dense:build_model",
            {"hidden_units": list(hidden_units), "dropout": 0.0},
            seed=1,
        ),
        model_inputs(FEATURES, Output()),
        distribution,
    )
    compile_model(
        model,
        CompileSettings(epochs, learning_rate=learning_rate, metrics=metrics),
        FEATURES.label,
        steps_per_epoch=training_input.steps_per_epoch,
        distribution=distribution,
    )
    callbacks = make_callbacks(
        CallbackSettings(**settings), FEATURES, training_input, distribution
    )
    with explaining(callbacks):
        fit = FitSettings(epochs, checkpoint_dir)
        history = fit_model(model, training_input, fit, callbacks)
    return history, model
