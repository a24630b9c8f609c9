"""Errors of a config: location, nearest key, expected and actual value."""

from __future__ import annotations

import pytest

from pipeline.config.load import load_config
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("trian.epochs=3", "train"),
        ("train.epoch=3", "epochs"),
        ("data.splits.tset=x", "test"),
        ("features.company.bucket=3", "buckets"),
        ("evaluate.thresholds=[{metric: a, change: {dir: 1}}]", "direction"),
        ("train.learning_rate={kind: cosine, final_fractoin: 0.1}", "final_fraction"),
        ("train.learning_rate={kind: cosin}", "cosine"),
    ],
)
def test_an_unknown_key_names_the_nearest(project, override, hint):
    with pytest.raises(ConfigError) as caught:
        load_config("fares", overrides=[override], cwd=project)

    assert f"--set {override}" in str(caught.value)
    assert f"did you mean {hint!r}?" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "overlay", "where"),
    [
        ("epochs: 7", "epoch: 7", "", "fares.yaml:13, train.epoch"),
        ("", "", "train:\n  batchsize: 3\n", "profiles/gpu.yaml:2, train.batchsize"),
        ("lower_bound", "low", "", "fares.yaml:18, evaluate.thresholds[0].low"),
    ],
)
def test_an_unknown_key_names_its_file_and_line(
    project, config_file, profile, old, new, overlay, where
):
    config_file.write_text(config_file.read_text().replace(old, new))
    profile(overlay or "description: x")

    with pytest.raises(ConfigError) as caught:
        load_config("fares", profile="gpu", cwd=project)

    assert f"configs/{where}" in str(caught.value)


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
    ("override", "words"),
    [
        ("model_params.x=.nan", "found: +nan"),
        (
            "model_params.x={a: [1.0, {b: -.inf}]}",
            "model_params.x[\\s\\S]*finite numbers",
        ),
        (
            "evaluate.metrics=[{class: AUC, params: {k: .inf}}]",
            "metrics\\[0\\].params.k",
        ),
    ],
)
def test_numbers_that_json_does_not_know_are_refused(project, override, words):
    with pytest.raises(ConfigError, match=words) as caught:
        load_config("fares", overrides=[override], cwd=project)
    assert f"--set {override}" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_check_across_keys_names_the_key_that_it_speaks_of(project):
    endpoint = "{machine_type: n1-standard-4, min_replicas: 3}"
    override = (
        f"cloud={{push: {{registry: {{serving_image: a}}, endpoint: {endpoint}}}}}"
    )

    with pytest.raises(ConfigError, match="max_replicas is less than") as caught:
        load_config("fares", overrides=[override], cwd=project)

    assert "cloud.push.endpoint.max_replicas" in str(caught.value)
