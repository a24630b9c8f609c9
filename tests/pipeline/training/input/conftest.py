"""Examples as TFRecordGen writes them, and the input that reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.config.features import FeatureSet
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from tests.kit.trainings import feature_set, files_in, settings
from tests.kit.transform_output import Output

FEATURES = feature_set({"a": "numeric"}, (0, 1, 2))
# The shards are unequal, and more than are read at a time.
SHARDS = (3, 1, 11, 0, 7, 2, 5, 4, 10, 8)


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of examples whose feature ``a`` is their number; the label repeats 0..2.

    Beside ``train-*`` there is ``eval-*`` with 20 examples in two shards.
    """
    folder = tmp_path_factory.mktemp("numbers")
    for split, shards in {"train": SHARDS, "eval": (13, 7)}.items():
        number = 0
        for index, count in enumerate(shards):
            examples = [
                encode({"a": [float(i)], "y": [i % 3], "sample_weight": [i / 4]})
                for i in range(number, number + count)
            ]
            number += count
            tfrecord.write(folder / f"{split}-{index:02d}.gz", examples)
    return folder


@pytest.fixture
def input_of(numbers: Path) -> Callable[..., Any]:
    """Makes the input of ``numbers``, or of another folder, from its settings."""

    def input_of(
        batch_size: int = 8,
        facts: dict[str, Any] | None = None,
        folder: Path = numbers,
        sample_weight: bool = False,
        seed: int = 3,
        class_weights: Any = None,
        label: dict[str, Any] | None = None,
        change: Callable[[Any], Any] = lambda outputs: outputs,
        **given: Any,
    ) -> Any:
        import tensorflow as tf

        from pipeline.training.input.examples import ExampleFormat
        from pipeline.training.input.records import count_records
        from pipeline.training.input.training_input import TrainingInput
        from pipeline.training.strategy.distribution import Distribution

        spec = {"a": "float32", "y": "float32" if label else "int64"}
        if sample_weight:
            spec["sample_weight"] = "float32"
        train = settings(
            seed=seed, class_weights=class_weights, input={"cache": "none", **given}
        )
        features = FEATURES.model_dump()
        if label:
            features["label"] |= label
        features["sample_weight"] = "sample_weight" if sample_weight else None
        output = Output(spec)
        example_format = ExampleFormat(
            output.raw_feature_spec(),
            lambda raw: change(output.transform_features_layer()(raw)),
            output.transformed_feature_spec(),
            FeatureSet.model_validate(features),
        )
        # Several workers count together, which takes several processes.
        alone = Distribution(tf.distribute.get_strategy(), "one_device", "", batch_size)
        records: Any = {
            split: count_records(
                patterns, example_format, alone, by_class=class_weights == "balanced"
            )
            for split, patterns in files_in(folder).items()
        }
        return TrainingInput(
            train, example_format, dataclasses.replace(alone, **(facts or {})), records
        )

    return input_of


@pytest.fixture
def numbers_in() -> Callable[[Any], list[list[float]]]:
    """Returns the feature ``a`` of each batch of a dataset."""

    def numbers_in(batches: Sequence[Any]) -> list[list[float]]:
        return [np.ravel(batch[0]["a_xf"]).tolist() for batch in batches]

    return numbers_in
