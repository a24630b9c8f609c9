"""Loading a config: profiles, overrides and the version."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.config.features import Numeric
from pipeline.config.load import load_config
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit


def test_a_copied_config_needs_a_name_of_its_own(project, config_text):
    """It would take over the workspace and the serving directory of the original."""
    copy = project / "configs" / "mine.yaml"
    copy.write_text(config_text)

    with pytest.raises(ConfigError, match="has the name of another config") as info:
        load_config("mine", cwd=project)

    original = project / "configs" / "fares.yaml"
    assert info.value.where == "configs/mine.yaml:2"
    assert info.value.actual and str(original) in info.value.actual
    assert info.value.hint == "change `name:` in configs/mine.yaml"
    assert load_config("mine", overrides=["name=mine"], cwd=project).name == "mine"
    original.rename(project / "configs" / "old.yaml")
    assert load_config("mine", cwd=project).name == "fares"


def test_a_profile_is_merged_over_the_config(project, profile):
    profile("train: {batch_size: 512}\nevaluate: {metrics: [Recall, AUC]}\n")

    config = load_config("fares", profile="gpu", cwd=project)

    assert (config.train.epochs, config.train.batch_size) == (7, 512)
    assert [metric.class_name for metric in config.evaluate.metrics] == [
        "Recall",
        "AUC",
    ]
    assert config.origin.profile == "configs/profiles/gpu.yaml"


def test_a_profile_may_reset_a_key_with_null(project, profile):
    profile("features: null\ntrain: {early_stopping: null}\n")

    config = load_config("fares", profile="gpu", cwd=project)

    assert config.features is None
    assert config.train.early_stopping is None


def test_overrides_are_merged_over_the_profile_in_order(project, profile):
    profile("train: {epochs: 8, batch_size: 9}\n")

    config = load_config(
        "fares",
        profile="gpu",
        overrides=["train.epochs=10", "train.epochs=11", "features.company.buckets=3"],
        cwd=project,
    )

    assert (config.train.epochs, config.train.batch_size) == (11, 9)
    assert config.model_dump()["features"]["company"]["buckets"] == 3


def test_an_override_may_change_a_feature_s_kind(project):
    config = load_config(
        "fares", overrides=["features.company.kind=numeric"], cwd=project
    )

    assert config.features == {"fare": Numeric(), "company": Numeric()}


def test_an_override_cannot_reach_into_a_list(project):
    with pytest.raises(UsageError, match="cannot reach into a list") as caught:
        load_config("fares", overrides=["evaluate.metrics.0=Recall"], cwd=project)

    message = str(caught.value)
    assert "--set evaluate.metrics.0=Recall" in message
    assert "--set 'evaluate.metrics=[...]'" in message


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("version: 2", "2 (a number)"),
        ("version: '1'", "'1' (a string)"),
        ("version: 1.0", "1.0 (a number)"),
        ("version: true", "true"),
        ("version:", "nothing"),
    ],
)
def test_another_version_is_refused(project, line, found, config_text):
    text = config_text.replace("version: 1", line) + "unknown_key_of_version_2: 3\n"
    (project / "configs" / "fares.yaml").write_text(text)

    with pytest.raises(ConfigError, match="cannot read the config's version") as caught:
        load_config("fares", cwd=project)

    assert caught.value.where == "configs/fares.yaml:1, version"
    assert caught.value.expected == "version: 1"
    assert found in str(caught.value.actual)


def test_a_config_must_say_its_version(project, config_text):
    (project / "configs" / "fares.yaml").write_text(
        config_text.replace("version: 1\n", "")
    )

    with pytest.raises(ConfigError, match="has no version") as caught:
        load_config("fares", cwd=project)

    assert "configs/fares.yaml" in str(caught.value)
    assert "write 'version: 1'" in str(caught.value)


def test_a_profile_of_other_pipelines(project, profile):
    profile("pipelines: [trips, fares]\ntrain: {batch_size: 512}\n")
    assert load_config("fares", profile="gpu", cwd=project).train.batch_size == 512

    profile("train: {batch_size: 512}\npipelines: [trips]\n")
    with pytest.raises(ConfigError, match="the profile is for other pipelines") as info:
        load_config("fares", profile="gpu", cwd=project)
    assert info.value.where == "configs/profiles/gpu.yaml:2"
    assert (info.value.expected, info.value.actual) == ("trips", "fares")

    profile("pipelines: fares\n")
    with pytest.raises(ConfigError, match="invalid value for pipelines") as info:
        load_config("fares", profile="gpu", cwd=project)
    assert info.value.hint == "write a list: [fares]"


def test_a_profile_of_a_data_set_is_for_it_alone():
    for name in ("cifar10", "fashion-mnist", "flowers", "mnist"):
        for path in (own_root() / "configs" / "profiles").glob(f"{name}-*.yaml"):
            load_config(name, profile=path.stem, cwd=own_root())
            with pytest.raises(ConfigError, match="the profile is for other pipelines"):
                load_config("digits", profile=path.stem, cwd=own_root())


def test_an_empty_profile_is_named(project, profile):
    profile("# nothing yet\n")

    with pytest.raises(ConfigError, match="is empty") as caught:
        load_config("fares", profile="gpu", cwd=project)

    assert caught.value.where == "configs/profiles/gpu.yaml"


def test_loading_imports_no_tensorflow_and_no_tfx(project):
    program = (
        "import sys, pathlib\n"
        "from pipeline.config.load import load_config\n"
        "from pipeline.config.serialize import to_yaml\n"
        "to_yaml(load_config('fares', cwd=pathlib.Path(sys.argv[1])))\n"
        "print(sorted({'tensorflow', 'tfx', 'apache_beam'} & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(project)],
        cwd=own_root(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.stdout == "[]\n", result.stderr
