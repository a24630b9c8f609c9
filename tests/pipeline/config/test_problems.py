"""Errors of a config: location, nearest key, expected and actual value."""

from __future__ import annotations

import pytest

from pipeline.config.load import load_config
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("change", "overlay", "overrides", "where", "hint"),
    [
        (
            ("epochs: 7", "epoch: 7"),
            "",
            [],
            "configs/fares.yaml:13, train.epoch",
            "did you mean 'epochs'?",
        ),
        (
            ("", ""),
            "train:\n  batchsize: 3\n",
            [],
            "configs/profiles/gpu.yaml:2, train.batchsize",
            "did you mean 'batch_size'?",
        ),
        (
            ("", ""),
            "train: {batch_size: 3}\n",
            ["trian.epochs=3"],
            "--set trian.epochs=3, trian",
            "did you mean 'train'?",
        ),
        (
            ("", ""),
            "",
            ["features.company.bucket=3"],
            "--set features.company.bucket=3",
            "did you mean 'buckets'?",
        ),
        (
            ("lower_bound", "lowerbound"),
            "",
            [],
            "configs/fares.yaml:18, evaluate.thresholds[0].lowerbound",
            "did you mean 'lower_bound'?",
        ),
        (
            ("lower_bound: 0.9", "change: {absolut: 1}"),
            "",
            ["evaluate.thresholds=[{metric: a, change: {dir: 1}}]"],
            "--set evaluate.thresholds=[{metric: a, change: {dir: 1}}]",
            "did you mean 'direction'?",
        ),
        (
            ("test: ", "tset: "),
            "",
            [],
            "configs/fares.yaml:5, data.splits.tset",
            "did you mean 'test'?",
        ),
    ],
)
def test_an_unknown_key_names_its_layer_and_the_nearest_key(
    project, config_file, change, overlay, overrides, where, hint, profile
):
    config_file.write_text(config_file.read_text().replace(*change))
    profile(overlay or "description: x")

    with pytest.raises(ConfigError) as caught:
        load_config("fares", profile="gpu", overrides=overrides, cwd=project)

    message = str(caught.value)
    assert where in message
    assert hint in message


def test_a_key_that_is_far_from_all_lists_them(project):
    with pytest.raises(ConfigError, match="unknown key 'qqq'") as caught:
        load_config("fares", overrides=["data.qqq=1"], cwd=project)

    assert "one of dir, splits" in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_a_missing_key_names_the_section_s_place(project, config_text, profile):
    profile("label: null\n")
    (project / "configs" / "fares.yaml").write_text(
        config_text.replace("  dir: data/fares\n", "")
    )

    with pytest.raises(ConfigError, match="2 problems") as caught:
        load_config("fares", profile="gpu", cwd=project)

    message = str(caught.value)
    assert "configs/fares.yaml:3, data.dir: the key 'dir' is missing" in message
    assert "configs/profiles/gpu.yaml:1, label: invalid value for label" in message


def test_all_problems_are_listed_up_to_five(project):
    overrides = [f"train.{key}=x" for key in ("epochs", "batch_size", "seed")]
    overrides += ["name=A", "model=3", "label.feature=4", "description=5"]

    with pytest.raises(ConfigError, match="the config has 7 problems") as caught:
        load_config("fares", overrides=overrides, cwd=project)

    message = str(caught.value)
    assert "and 2 more" in message
    assert len(message.splitlines()) == 7
    assert caught.value.exit_code == 2


def test_a_problem_says_expected_and_found(project):
    with pytest.raises(ConfigError) as caught:
        load_config("fares", overrides=["train.epochs=0"], cwd=project)

    error = caught.value
    assert error.where == "--set train.epochs=0"
    assert error.expected == "at least 1"
    assert error.actual == "0 (a number)"


@pytest.mark.parametrize(
    ("override", "expected", "hint"),
    [
        (
            "private=yes",
            "true or false",
            "write true: in YAML 1.2 yes, no, on and off are strings",
        ),
        ("private=Off", "true or false", "write false: in YAML 1.2"),
        ("private=1", "true or false", None),
        ("train.epochs='5'", "a whole number", "write 5, without quotes"),
        ("train.epochs=1_000", "a whole number", "write 1000, without underscores"),
        ("train.epochs=1.5", "a whole number", None),
        (
            "train.learning_rate='1e-3'",
            "a number",
            "write 1e-3, without quotes",
        ),
        ("description=3", "a string", 'quote it: "3"'),
        ("train.callbacks=mine:Log", "a list", "write a list: [mine:Log]"),
        ("train=3", "a mapping", None),
        ("evaluate.slices=3", "a list", None),
    ],
)
def test_a_value_of_the_wrong_type_says_how_to_write_it(
    project, override, expected, hint
):
    with pytest.raises(ConfigError, match="invalid value for ") as caught:
        load_config("fares", overrides=[override], cwd=project)

    assert caught.value.expected == expected
    assert (caught.value.hint or "").startswith(hint or "")
    assert (caught.value.hint is None) == (hint is None)


@pytest.mark.parametrize(
    ("override", "where", "found"),
    [
        ("train.learning_rate=0", "train.learning_rate", "0"),
        ("train.learning_rate=.nan", "train.learning_rate", "nan"),
        ("train.learning_rate={initial: 0}", "train.learning_rate.initial", "0"),
    ],
)
def test_learning_rates_out_of_bounds(project, override, where, found):
    with pytest.raises(ConfigError, match=f"^invalid value for {where}\n") as caught:
        load_config("fares", overrides=[override], cwd=project)

    assert (caught.value.actual or "").startswith(found)


def test_an_unknown_learning_rate_schedule(project):
    with pytest.raises(ConfigError, match="unknown kind 'cosin'") as caught:
        load_config(
            "fares", overrides=["train.learning_rate={kind: cosin}"], cwd=project
        )

    assert caught.value.expected == "one of constant, cosine, exponential, piecewise"
    assert caught.value.hint == "did you mean 'cosine'?"


def test_an_unknown_key_of_a_schedule(project):
    override = "train.learning_rate={kind: cosine, final_fractoin: 0.1}"
    with pytest.raises(ConfigError, match="unknown key .final_fractoin.") as caught:
        load_config("fares", overrides=[override], cwd=project)

    assert caught.value.hint == "did you mean 'final_fraction'?"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "model_params.x=.inf",
            "invalid value for model_params.x[\\s\\S]*finite numbers",
        ),
        ("model_params.x=.nan", "found: +nan"),
        (
            "model_params.x={a: [1.0, {b: -.inf}]}",
            "model_params.x[\\s\\S]*finite numbers",
        ),
        (
            "evaluate.metrics=[{class: AUC, params: {k: .inf}}]",
            "invalid value for evaluate.metrics\\[0\\].params.k",
        ),
    ],
)
def test_numbers_that_json_does_not_know_are_refused(project, override, words):
    with pytest.raises(ConfigError, match=words) as caught:
        load_config("fares", overrides=[override], cwd=project)
    assert f"--set {override}" in str(caught.value)
    assert caught.value.exit_code == 2
