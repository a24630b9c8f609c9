"""A training of generated examples with callbacks, as ``run_fn`` puts it together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from tests.kit.trainings import feature_set, files_in, settings
from tests.kit.transform_output import Output

FEATURES = feature_set({"fare": "numeric", "income": "numeric"}, label="tip")
BATCH, TRAIN, EVAL, SEED = 8, 40, 16, 2
OUTPUT = Output({"fare": "float32", "income": "float32", "tip": "int64"})


def write_examples(directory: Path) -> Path:
    """Writes examples whose label is whether ``fare`` is positive."""
    random = np.random.default_rng(5)
    for split, count in {"train": TRAIN, "eval": EVAL}.items():
        fares, incomes = random.normal(size=(2, count))
        tips = fares > 0
        rows = zip(fares.tolist(), incomes.tolist(), tips.tolist(), strict=True)
        tfrecord.write(
            directory / f"{split}.gz",
            [
                encode({"fare": [a], "income": [b], "tip": [int(tip)]})
                for a, b, tip in rows
            ],
        )
    return directory


def train(
    data: Path, *, tensorboard_dir: str | None = None, **given: Any
) -> tuple[dict[str, list[float]], Any]:
    """Trains; returns the history and the model.

    Args:
      data: as ``write_examples`` writes it.
      tensorboard_dir: of TensorBoard's logs; None: beside the data.
      given: section ``train`` of the config.
    """
    from pipeline.training.build import build_model, model_inputs
    from pipeline.training.callbacks import make_callbacks
    from pipeline.training.compile import compile_model
    from pipeline.training.fit import fit_model
    from pipeline.training.input.training_input import make_input
    from pipeline.training.strategy.distribution import choose_distribution

    defaults = {"epochs": 4, "learning_rate": 0.01, "metrics": [], "seed": SEED}
    section = settings(batch_size=BATCH, **(defaults | given))
    distribution = choose_distribution(section)
    training_input = make_input(section, files_in(data), FEATURES, OUTPUT, distribution)
    model = build_model(
        "pipeline.training.models.dense:build_model",
        {"hidden_units": [], "dropout": 0.0},
        model_inputs(FEATURES, OUTPUT),
        distribution,
        seed=1,
    )
    compile_model(
        model,
        section,
        FEATURES.label,
        steps_per_epoch=training_input.steps_per_epoch,
        distribution=distribution,
    )
    callbacks = make_callbacks(section, tensorboard_dir or f"{data}/tensorboard")
    history = fit_model(model, training_input, section.epochs, callbacks)
    return history, model
