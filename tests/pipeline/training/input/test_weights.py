"""Weights of classes and of examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sample_data.tf_example import encode
from sluice.errors import NodeError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

CLASS_WEIGHTS = {"0": 2.0, "2": 0.5}


def weights_of(batches: Any) -> dict[int, tuple[int, float]]:
    """Returns class and weight of each example by its feature ``a``."""
    return {
        int(value): (int(label), float(weight))
        for features, labels, weights in batches
        for value, label, weight in zip(
            np.ravel(features["a_xf"]), np.ravel(labels), weights, strict=True
        )
    }


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_weights_of_class_and_example_multiply(input_of, cache):
    made = input_of(class_weights=CLASS_WEIGHTS, sample_weight=True, cache=cache)
    found = weights_of(made.train().take(made.steps_per_epoch))
    assert found == {
        number: (number % 3, number / 4 * (2.0, 1.0, 0.5)[number % 3])
        for number in range(51)
    }
    features = made.train().element_spec[0]
    assert set(features) == {"a_xf"}, "the weight is no input of the model"


def test_validation_has_weights_of_examples_but_not_of_classes(input_of):
    made = input_of(class_weights=CLASS_WEIGHTS, sample_weight=True)
    assert weights_of(made.eval()) == {i: (i % 3, i / 4) for i in range(20)}
    assert len(input_of(class_weights=CLASS_WEIGHTS).eval().element_spec) == 2


def test_balanced_weights_are_those_of_scikit_learn(input_of, tmp_path):
    labels = [0] * 6 + [1] * 3
    examples = [encode({"a": [float(i)], "y": [y]}) for i, y in enumerate(labels)]
    for split in ("train", "eval"):
        tfrecord.write(tmp_path / f"{split}-0.gz", examples)
    made = input_of(class_weights="balanced", folder=tmp_path)
    found = weights_of(made.train().take(made.steps_per_epoch)).values()
    # A class without examples has no part, as in compute_class_weight.
    assert dict(found) == {0: 9 / 2 / 6, 1: 9 / 2 / 3}


@pytest.mark.parametrize("wrong", [-0.5, float("nan"), float("inf")])
def test_a_wrong_weight_names_its_file(input_of, tmp_path, wrong):
    for index, weight in enumerate([1.0, wrong]):
        example = encode({"a": [1.0], "y": [1], "sample_weight": [weight]})
        tfrecord.write(tmp_path / f"train-{index}.gz", [example])
        tfrecord.write(tmp_path / f"eval-{index}.gz", [example])
    with pytest.raises(NodeError, match="1 of 1 sample weights") as caught:
        input_of(folder=tmp_path, sample_weight=True)
    assert caught.value.where == f"{tmp_path}/train-1.gz"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x | {"a_xf": x["a_xf"][1:]}, "does not return one row per record"),
        (lambda x: x | {"sample_weight": 2 * x["sample_weight"]}, "not those of the"),
    ],
)
def test_own_preprocessing_returns_each_record_with_its_weight(input_of, change, says):
    with pytest.raises(NodeError, match=says):
        input_of(sample_weight=True, change=change)
