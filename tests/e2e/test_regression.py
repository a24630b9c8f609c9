"""A regression of two targets of very different scale, with a known answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.config.load import load_config
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from sluice.workspace import locate
from tests.kit.project import write_project

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

# Label: OFFSET + SLOPES of the numbers, and noise.
OFFSETS, SLOPES = np.array([1e6, 1e-3]), np.array([[6e3, 8e3], [4e-4, -3e-4]])
NOISE = np.array([2e3, 1e-4])
CONFIG = """
version: 1
name: plant
data:
  dir: data
  splits: {train: "train*", eval: "eval*", test: "test*"}
label: {feature: yields, task: regression, targets: [mass, "share (1)"]}
features:
  heat: {kind: numeric}
  light: {kind: numeric}
model: dense
model_params: {hidden_units: [16], dropout: 0.0}
train: {epochs: 15, learning_rate: 0.01, sample_weight: weight}
evaluate:
  metrics:
    - {class: RootMeanSquaredError, name: rmse, target: mass}
    - {class: RootMeanSquaredError, name: share_rmse, target: share (1)}
    - {class: R2Score, target: share (1), name: share_r2}
    - {class: RelativeError, target: mass}
    - {class: MeanLabel, target: all}
    - ExampleCount
  slices: [[field]]
  thresholds:
    - {metric: rmse, upper_bound: 2300}
    - {metric: rmse, slice: [field], upper_bound: 2400}
    - {metric: share_rmse, upper_bound: 0.000115}
    - {metric: share_r2, lower_bound: 0.95}
    - {metric: mass_relative_error, upper_bound: 0.0019}
"""
ONE = "presence { min_fraction: 1 } shape { dim { size: 1 } }"
SCHEMA = f"""
default_environment: "TRAINING" default_environment: "SERVING"
feature {{ name: "yields" type: FLOAT not_in_environment: "SERVING"
  presence {{ min_fraction: 1 }} shape {{ dim {{ size: 2 }} }} }}
feature {{ name: "heat" type: FLOAT {ONE} }}
feature {{ name: "light" type: FLOAT {ONE} }}
feature {{ name: "field" type: BYTES {ONE} }}
feature {{ name: "weight" type: FLOAT {ONE} not_in_environment: "SERVING" }}
"""


def write(path: Path, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Writes records, of which those with the weight 0 have a wrong label."""
    chance = np.random.default_rng(seed)
    numbers = chance.normal(size=(count, 2))
    expected = OFFSETS + numbers @ SLOPES.T
    labels = expected + NOISE * chance.normal(size=(count, 2))
    rows = []
    for index, (given, label) in enumerate(zip(numbers, labels, strict=True)):
        weight = float(index % 10 > 0) if path.name.startswith("train") else 1.0
        rows.append(
            encode(
                {
                    "yields": (label if weight else 2 * OFFSETS - label).tolist(),
                    "heat": [float(given[0])],
                    "light": [float(given[1])],
                    "field": [b"north" if index % 3 else b"south"],
                    "weight": [weight],
                }
            )
        )
    tfrecord.write(path, rows)
    return numbers, expected


@pytest.fixture(scope="module")
def plant(tmp_path_factory, run_config):
    """The project after a run, and its record."""
    root = write_project(tmp_path_factory.mktemp("plant"), "plant", CONFIG, SCHEMA)
    for seed, (split, count) in enumerate({"train": 4000, "eval": 500}.items()):
        write(root / "data" / f"{split}-0", count, seed)
    write(root / "data" / "test-0", 2000, 9)
    record = run_config(load_config("plant", cwd=root), locate(root, "plant"))
    assert record.status == "succeeded", (record.error, record.gates[-1:])
    return root, record


def test_the_error_is_that_of_the_noise(plant):
    _, record = plant
    (gate,) = [gate for gate in record.gates if gate.gate == "model"]
    checks = {(c.check, c.slice): c.actual for c in gate.rows}
    for name, floor in zip(("rmse", "share_rmse"), NOISE, strict=True):
        assert floor * 0.93 < checks[name, "overall"] < 1.15 * floor
    # The share's variance is that of its slopes, 25 times that of the noise.
    assert checks["share_r2", "overall"] == pytest.approx(25 / 26, abs=0.01)
    # Of a mean of OFFSETS, the mean absolute error of normal noise.
    expected = NOISE[0] * np.sqrt(2 / np.pi) / OFFSETS[0]
    assert checks["mass_relative_error", "overall"] == pytest.approx(expected, rel=0.15)


def test_predictions_have_the_unit_of_each_target(plant, tmp_path):
    from serving.predictor import Predictor

    root, _ = plant
    numbers, expected = write(tmp_path / "new", 500, 77)
    model = Predictor(locate(root, "plant").serving / "1")
    rows: list[Any] = [x.prediction for x in model.predict_files([tmp_path / "new"])]
    found = [[row["mass"], row["share (1)"]] for row in rows]
    # The errors are those of the function itself, without noise.
    errors = np.sqrt(np.mean((np.array(found) - expected) ** 2, axis=0))
    assert np.all(errors < 0.3 * NOISE), errors / NOISE
