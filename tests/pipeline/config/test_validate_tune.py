"""The section ``tune``: each value is checked as if it stood in the config itself."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.config.load import load_config
from pipeline.config.train import Train
from pipeline.config.tune import with_values, write_values
from sluice.project import own_root

pytestmark = pytest.mark.unit


def space(text: str) -> str:
    return f"tune.space={{{text}}}"


SEED, EPOCHS = space("train.seed: [1]"), space("train.epochs: [3]")
UNFREEZE = "train.fine_tune={freeze: [a], unfreeze_after: 3}"


@pytest.mark.parametrize(
    "overrides",
    [
        (space("train.learning_rate: {min: 0.0001, max: 0.1, log: true}"),),
        (space("model_params.hidden_units: [[64], [128, 64]]"),),
        (space("train.optimizer.class: [Adam, SGD]"), "tune.algorithm=bayesian"),
        (
            space("train.learning_rate.initial: [0.1]"),
            "train.learning_rate={kind: cosine}",
        ),
        (space("train.seed: [2, 3]"), "tune.objective={metric: val_cost, mode: min}"),
        (space("train.seed: [2, 3]"), "tune.epochs=3", "tune.algorithm=hyperband"),
        (space("model_params.any: [2, {a: b}]"), "model=own_model:build"),
    ],
)
def test_what_may_be_tuned(validate, project, overrides):
    (project / "own_model.py").write_text("def build(inputs, params): ...\n")
    assert validate(*overrides).config.tune is not None


@pytest.mark.parametrize(
    ("key", "overrides", "says"),
    [
        ("objective.metric", (SEED, "tune.objective=val_cost"), "mode"),
        ("space.seed", (space("seed: [1]"),), "a key of train or model_params"),
        ("space.train.seed.max", (space("train.seed: {min: 3, max: 3}"),), "not above"),
        (
            "space.train.seed.log",
            (space("train.seed: {min: 0, max: 3, log: true}"),),
            "above 0",
        ),
        ("space.train.dropout[0]", (space("train.dropout: [1]"),), "unknown key"),
        (
            "space.model_params.units[0]",
            (space("model_params.units: [[3]]"),),
            "did you mean 'hidden_units'",
        ),
        ("space.train.strategy", (space("train.strategy: [tpu]"),), "all trials have"),
        (
            "objective",
            (space("train.loss: [BinaryCrossentropy, BinaryFocalCrossentropy]"),),
            "values of different losses say nothing",
        ),
        ("epochs", (SEED, "tune.epochs=2", UNFREEZE), "of 2 epochs none is left"),
        ("space.train.epochs", (EPOCHS, "tune.algorithm=hyperband"), "cannot be tuned"),
        ("space.train.epochs", (EPOCHS, "tune.epochs=2"), "cannot be tuned"),
    ],
)
def test_what_is_refused(refused, key, overrides, says):
    message = refused(*overrides)
    assert says in message
    assert f"tune.{key}" in message
    assert "problems" not in message


def test_what_is_wrong_in_the_config_is_named_once(refused):
    tuned = space("model_params.hidden_units: [[3], [4], [5]]")
    for wrong in ("model_params.dropout=7", "model_params.droput=0.5"):
        said = refused(wrong, tuned)
        assert wrong in said and "tune" not in said


def test_the_values_before_make_no_difference():
    values = {
        "train.optimizer.class": "SGD",
        "train.early_stopping.patience": 9,
        "train.learning_rate": 0.5,
        "model_params.units": [3],
    }
    before: list[tuple[Train, dict[str, Any]]] = [
        (Train(), {"dropout": 0.5}),
        (
            Train.model_validate(
                {
                    "optimizer": {"class": "SGD", "params": {"momentum": 0.9}},
                    "early_stopping": {"patience": 2},
                    "learning_rate": {"kind": "cosine"},
                }
            ),
            {"dropout": 0.5, "units": [4, 5]},
        ),
    ]
    found = [with_values(train, params, values) for train, params in before]
    assert found[0] == found[1]
    train, params = found[0]
    assert (train.optimizer.class_name, train.optimizer.params) == ("SGD", {})
    assert train.early_stopping is not None and train.early_stopping.patience == 9
    assert (train.learning_rate, params) == (0.5, {"dropout": 0.5, "units": [3]})
    assert before[1][1]["units"] == [4, 5], "what was given has changed"


CONFIG = """\
# How to run it.
model: dense   # small
model_params: {dropout: 0.5}   # of the layers
train:
  # Not too many.
  epochs: 7    # at most
  learning_rate:   # falls
    kind: cosine
    initial: 0.5
  optimizer: {class: SGD, params: {momentum: 0.9}}
  shuffle: 'yes'

# Before the training.
tune:
  space:
    train.seed: [1, 2]
evaluate:
  thresholds:
    - {metric: auc, lower_bound: 0.5}   # of all
"""
WRITTEN = """\
# How to run it.
model: dense   # small
model_params: {hidden_units: [64, 32], dropout: 0.5} # of the layers
train:
  # Not too many.
  seed: 3
  epochs: 9    # at most
  learning_rate: 1e-05 # falls
  optimizer: {class: Adam, params: {momentum: 0.5}}
  shuffle: 'yes'

# Before the training.
tune:
  space:
    train.seed: [1, 2]
evaluate:
  thresholds:
    - {metric: auc, lower_bound: 0.5}   # of all
"""
VALUES = {
    "model_params.hidden_units": [64, 32],
    "train.seed": 3,
    "train.epochs": 9,
    "train.learning_rate": 1e-05,
    "train.optimizer.params.momentum": 0.5,
    "train.optimizer.class": "Adam",
}


def test_values_are_written_and_comments_are_kept(tmp_path):
    file = tmp_path / "fares.yaml"
    file.write_text(CONFIG)
    write_values(file, VALUES)
    assert file.read_text() == WRITTEN
    write_values(file, VALUES)
    assert file.read_text() == WRITTEN


@pytest.mark.parametrize("name", ["cifar10", "digits", "taxi"])
def test_what_is_written_is_what_is_loaded(project, name):
    file = project / "configs" / f"{name}.yaml"
    file.write_text((own_root() / "configs" / file.name).read_text())
    before = load_config(name, cwd=project)
    values = {**VALUES, "train.clip_gradients": {"norm": 0.5}, "model_params.a": None}
    write_values(file, values)
    config = load_config(name, cwd=project)
    train, model_params = with_values(before.train, before.model_params, values)
    assert (config.train, config.model_params) == (train, model_params)
    changed = {"train": train, "model_params": model_params}
    assert config.model_dump() == before.model_copy(update=changed).model_dump()


def test_a_search_runs_in_one_process(refused):
    assert "one process" in refused(SEED, "train.processes=2")
    assert "one process" in refused(SEED, "train.strategy=parameter_server")
