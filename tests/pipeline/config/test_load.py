"""Loading a config: where it is found, profiles, overrides, and its problems."""

from __future__ import annotations

import pytest

from pipeline.config.features import Numeric
from pipeline.config.load import load_config
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.fixture
def load(project):
    def load(*overrides, name="fares", profile=None, cwd=project):
        return load_config(name, profile=profile, overrides=overrides, cwd=cwd)

    return load


def test_a_config_is_found_by_name_or_path(project, load, tmp_path_factory):
    inner, elsewhere = project / "notebooks", tmp_path_factory.mktemp("cron")
    inner.mkdir()
    file = str(project / "configs" / "fares.yaml")
    for name, cwd in [
        ("fares", inner),
        (file, elsewhere),
        ("configs/fares.yaml", project),
        ("fares.yaml", project / "configs"),
    ]:
        config = load(name=name, cwd=cwd)
        assert config.root == project
        assert config.data_dir == project / "data" / "fares"
        assert config.schema_path == project / "schemas" / "fares" / "schema.pbtxt"


def test_sluice_s_configs_are_there_unless_the_project_has_its_own(project, load):
    assert load(name="digits", cwd=project.parent).root == own_root()
    text = (project / "configs" / "fares.yaml").read_text()
    (project / "configs" / "digits.yaml").write_text(text.replace("fares", "digits", 1))
    assert load(name="digits").root == project


@pytest.mark.parametrize(
    ("name", "profile", "says"),
    [
        ("fare", None, "there is no config 'fare'.*fares.*did you mean 'fares'"),
        ("configs/none.yaml", None, "there is no config file 'configs/none.yaml'"),
        ("fares", "qick", "there is no profile 'qick'.*did you mean 'quick'"),
        ("fares", "../../elsewhere", "there is no profile"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest(load, name, profile, says):
    with pytest.raises(UsageError, match=f"(?s){says}"):
        load(name=name, profile=profile)


def test_a_copied_config_needs_a_name_of_its_own(project, load, config_text):
    """It would take over the workspace and the serving directory of the original."""
    copy = project / "configs" / "mine.yaml"
    copy.write_text(config_text)
    with pytest.raises(ConfigError, match="has the name of another one") as caught:
        load(name="mine")
    assert caught.value.where == "configs/mine.yaml:2"
    assert load("name=mine", name="mine").name == "mine"
    (project / "trial").mkdir()
    (project / "trial" / "fares.yaml").write_text(config_text)
    with pytest.raises(ConfigError, match="has the name of another one"):
        load(name=str(project / "trial" / "fares.yaml"))
    (project / "configs" / "fares.yaml").rename(project / "configs" / "old.yaml")
    assert load(name="mine").name == "fares"


def test_profile_and_overrides_are_merged_in_order(load, profile):
    profile(
        "train: {epochs: 8, batch_size: 9, early_stopping: null}\n"
        "evaluate: {metrics: [Recall, AUC]}\n"
    )
    config = load(
        "train.epochs=10",
        "train.epochs=11",
        "features.company.kind=numeric",
        profile="gpu",
    )
    assert (config.train.epochs, config.train.batch_size) == (11, 9)
    assert config.train.early_stopping is None
    assert config.features == {"fare": Numeric(), "company": Numeric()}
    assert [item.class_name for item in config.evaluate.metrics] == ["Recall", "AUC"]
    assert config.origin.profile == "configs/profiles/gpu.yaml"
    assert load(profile="quick").train.epochs == 2, "a profile of Sluice's own"


def test_a_profile_of_a_data_set_is_for_it_alone():
    for name in ("cifar10", "fashion-mnist", "flowers", "mnist"):
        for path in (own_root() / "configs" / "profiles").glob(f"{name}-*.yaml"):
            load_config(name, profile=path.stem, cwd=own_root())
            with pytest.raises(ConfigError, match="profile is not for the pipeline"):
                load_config("digits", profile=path.stem, cwd=own_root())


def test_five_problems_with_their_places(project, load, profile, config_text):
    profile("evaluate:\n  metric: 3\n")
    text = config_text.replace("  dir: data/fares\n", "").replace("7", "0")
    (project / "configs" / "fares.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load("label.feature=4", "features.company.kind=hashd", profile="gpu")
    said = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in said] == [
        "the config has 5 problems",
        "  - configs/fares.yaml:3, data.dir",
        "  - --set label.feature=4",
        "  - --set features.company.kind=hashd, features.company",
        "  - configs/fares.yaml:12, train.epochs",
        "  - configs/profiles/gpu.yaml:2, evaluate.metric",
    ]
    assert caught.value.exit_code == 2


THRESHOLD = "evaluate.thresholds=[{metric: auc, %s}]"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("model_params.x=.nan", "finite numbers only"),
        ("model_params.x={a: [1.0, {b: -.inf}]}", "finite numbers only"),
        ("model_params.x=2024-01-31", "finite numbers only"),
        ("features.company.bucket=3", "did you mean 'buckets'"),
        (THRESHOLD % "change: {dir: 1}", "did you mean 'direction'"),
        ("name=-a", "lower-case letters, digits and hyphens"),
        (f"name={129 * 'a'}", "lower-case letters, digits and hyphens"),
        ("data.splits.train=/data/train-*", "below data.dir"),
        ("data.splits.train=a/../../b", "below data.dir"),
        ("data.dir=gs://", "data.dir"),
        ("data.dir=s3://bucket/data", "data.dir"),
        ("schema=gs://bucket/a", "a path of this machine"),
        *(
            (f"label.classes={given}", "classes")
            for given in ("[1]", "[1, 1]", "[0, '1']", "[true, false]")
        ),
        (
            "evaluate.thresholds=[{metric: auc}]",
            "lower_bound, upper_bound, better_than or change",
        ),
        (THRESHOLD % "lower_bound: 2, upper_bound: 1", "above"),
        (THRESHOLD % "lower_bound: .nan", "finite"),
        (THRESHOLD % "lower_bound: 0, slice: {a: true}", "such as {payment_type:"),
        (THRESHOLD % "change: {direction: lower_is_better}", "thresholds[0].change"),
        ("examples.images={min_side: 9, max_side: 8}", "min_side is above max_side"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(load, override, says):
    with pytest.raises(ConfigError) as caught:
        load(override)
    assert says in str(caught.value)
    assert f"--set {override}" in str(caught.value)


def test_a_check_across_keys_names_the_key_that_it_speaks_of(load):
    endpoint = "{machine_type: n1-standard-4, min_replicas: 3}"
    with pytest.raises(ConfigError, match="max_replicas is less than") as caught:
        load(
            f"cloud={{push: {{registry: {{serving_image: a}}, endpoint: {endpoint}}}}}"
        )
    assert "cloud.push.endpoint.max_replicas" in str(caught.value)
