from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.config.config import Config
from pipeline.config.features import Numeric
from pipeline.config.load import load_config
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit

BASE = """\
version: 1
name: fares
data:
  dir: data/fares
  splits: {train: "train-*", eval: "eval-*", test: "test-*"}
label: {feature: big_tip}
features:
  fare: {kind: numeric}
  company: {kind: hashed, buckets: 16}
model: dense
train:
  epochs: 7
evaluate:
  metrics: [AUC, ExampleCount]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "configs" / "profiles").mkdir(parents=True)
    (tmp_path / "configs" / "fares.yaml").write_text(BASE)
    return tmp_path.resolve()


def profile(project: Path, text: str, name: str = "gpu") -> None:
    (project / "configs" / "profiles" / f"{name}.yaml").write_text(text)


def test_a_name_is_found_from_anywhere_in_the_project(project: Path) -> None:
    inner = project / "notebooks" / "deep"
    inner.mkdir(parents=True)

    config = load_config("fares", cwd=inner)

    assert config.name == "fares"
    assert config.root == project
    assert config.data_dir == project / "data" / "fares"
    assert config.schema_path == project / "schemas" / "fares" / "schema.pbtxt"
    assert config.serving_dir is None


def test_a_copied_config_needs_a_name_of_its_own(project: Path) -> None:
    """It would take over the workspace and the serving directory of the original."""
    copy = project / "configs" / "mine.yaml"
    copy.write_text(BASE)

    with pytest.raises(ConfigError, match="has the name of another config") as info:
        load_config("mine", cwd=project)

    original = project / "configs" / "fares.yaml"
    assert info.value.where == "configs/mine.yaml:2"
    assert info.value.actual and str(original) in info.value.actual
    assert info.value.hint == "change `name:` in configs/mine.yaml"
    assert load_config("mine", overrides=["name=mine"], cwd=project).name == "mine"
    original.rename(project / "configs" / "old.yaml")
    assert load_config("mine", cwd=project).name == "fares"


def test_a_path_needs_no_cwd_in_the_project(project: Path, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("cron")

    absolute = load_config(str(project / "configs" / "fares.yaml"), cwd=elsewhere)
    relative = load_config("configs/fares.yaml", cwd=project)
    bare = load_config("fares.yaml", cwd=project / "configs")

    assert absolute.root == relative.root == bare.root == project
    assert absolute.origin.file == str(project / "configs" / "fares.yaml")
    assert relative.origin.file == "configs/fares.yaml"


def test_a_config_below_configs_is_of_the_same_project(project: Path) -> None:
    path = project / "configs" / "team" / "mine.yml"
    path.parent.mkdir()
    path.write_text(BASE.replace("fares", "team", 1))

    assert load_config(str(path), cwd=Path("/")).root == project


def test_a_linked_config_is_of_the_project_that_links_it(
    project: Path, tmp_path_factory
) -> None:
    target = tmp_path_factory.mktemp("store") / "shared.yaml"
    target.write_text(BASE.replace("fares", "linked", 1))
    (project / "configs" / "linked.yaml").symlink_to(target)

    assert load_config("linked", cwd=project).root == project


def test_absolute_paths_stay(project: Path) -> None:
    config = load_config(
        "fares",
        overrides=[
            "data.dir=/data/fares",
            "schema=/data/schema.pbtxt",
            "push.serving_dir=/models/fares",
        ],
        cwd=project,
    )

    assert config.data_dir == Path("/data/fares")
    assert config.schema_path == Path("/data/schema.pbtxt")
    assert config.serving_dir == Path("/models/fares")


def test_a_name_falls_back_to_the_configs_of_sluice(tmp_path: Path) -> None:
    config = load_config("digits", cwd=tmp_path)

    assert config.root == own_root()


def test_a_project_s_own_config_comes_first(project: Path) -> None:
    (project / "configs" / "digits.yaml").write_text(BASE.replace("fares", "digits", 1))

    assert load_config("digits", cwd=project).root == project


def test_an_unknown_name_lists_the_configs_and_the_nearest(project: Path) -> None:
    with pytest.raises(UsageError, match="There is no config 'fare'") as caught:
        load_config("fare", cwd=project)

    message = str(caught.value)
    assert str(project / "configs") in message
    assert "one of digits, fares, taxi" in message
    assert "did you mean 'fares'?" in message
    assert not isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("name", ["FARES", "", "..", "profiles"])
def test_odd_names_are_unknown_names(project: Path, name: str) -> None:
    with pytest.raises(UsageError, match="There is no config"):
        load_config(name, cwd=project)


@pytest.mark.parametrize("path", ["configs/none.yaml", "none.yml", "configs/profiles/"])
def test_a_path_without_a_file_is_named(project: Path, path: str) -> None:
    with pytest.raises(UsageError, match="config file does not exist") as caught:
        load_config(path, cwd=project)

    assert str(project / path) in str(caught.value)


def test_a_config_outside_a_project_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "alone.yaml").write_text(BASE)

    with pytest.raises(UsageError, match="not inside a project") as caught:
        load_config("alone.yaml", cwd=tmp_path)

    assert "mkdir configs" in str(caught.value)


def test_a_profile_lies_over_the_config(project: Path) -> None:
    profile(project, "train: {batch_size: 512}\nevaluate: {metrics: [Recall]}\n")

    config = load_config("fares", profile="gpu", cwd=project)

    assert (config.train.epochs, config.train.batch_size) == (7, 512)
    assert [metric.class_name for metric in config.evaluate.metrics] == ["Recall"]
    assert config.origin.profile == "configs/profiles/gpu.yaml"


def test_a_profile_may_take_away_with_null(project: Path) -> None:
    profile(project, "features: null\ntrain: {early_stopping: null}\n")

    config = load_config("fares", profile="gpu", cwd=project)

    assert config.features is None
    assert config.train.early_stopping is None


def test_sluice_s_own_profiles_are_there_for_every_project(project: Path) -> None:
    config = load_config("fares", profile="quick", cwd=project)

    assert config.train.epochs == 2
    assert config.origin.profile == str(own_root() / "configs/profiles/quick.yaml")


def test_an_unknown_profile_lists_those_there_are(project: Path) -> None:
    profile(project, "train: {epochs: 1}\n")

    with pytest.raises(UsageError, match="no profile 'qick'") as caught:
        load_config("fares", profile="qick", cwd=project)

    assert "one of gpu, quick" in str(caught.value)
    assert "did you mean 'quick'?" in str(caught.value)


def test_overrides_lie_over_the_profile_in_order(project: Path) -> None:
    profile(project, "train: {epochs: 8, batch_size: 9}\n")

    config = load_config(
        "fares",
        profile="gpu",
        overrides=["train.epochs=10", "train.epochs=11", "features.company.buckets=3"],
        cwd=project,
    )

    assert (config.train.epochs, config.train.batch_size) == (11, 9)
    assert config.model_dump()["features"]["company"]["buckets"] == 3


def test_an_override_may_change_a_feature_s_kind(project: Path) -> None:
    config = load_config(
        "fares", overrides=["features.company.kind=numeric"], cwd=project
    )

    assert config.features == {"fare": Numeric(), "company": Numeric()}


def test_an_override_cannot_reach_into_a_list(project: Path) -> None:
    with pytest.raises(UsageError, match="cannot reach into a list") as caught:
        load_config("fares", overrides=["evaluate.metrics.0=Recall"], cwd=project)

    message = str(caught.value)
    assert "--set evaluate.metrics.0=Recall" in message
    assert "--set 'evaluate.metrics=[...]'" in message


@pytest.mark.parametrize(
    ("base", "overlay", "overrides", "where", "hint"),
    [
        (
            BASE.replace("epochs: 7", "epoch: 7"),
            "",
            [],
            "configs/fares.yaml:12, train.epoch",
            "did you mean 'epochs'?",
        ),
        (
            BASE,
            "train:\n  batchsize: 3\n",
            [],
            "configs/profiles/gpu.yaml:2, train.batchsize",
            "did you mean 'batch_size'?",
        ),
        (
            BASE,
            "train: {batch_size: 3}\n",
            ["trian.epochs=3"],
            "--set trian.epochs=3, trian",
            "did you mean 'train'?",
        ),
        (
            BASE,
            "",
            ["features.company.bucket=3"],
            "--set features.company.bucket=3",
            "did you mean 'buckets'?",
        ),
        (
            BASE + "  thresholds:\n  - {metric: auc, lowerbound: 1}\n",
            "",
            [],
            "configs/fares.yaml:16, evaluate.thresholds[0].lowerbound",
            "did you mean 'lower_bound'?",
        ),
        (
            BASE + "  thresholds:\n  - metric: auc\n    change: {absolut: 1}\n",
            "",
            ["evaluate.thresholds=[{metric: a, change: {dir: 1}}]"],
            "--set evaluate.thresholds=[{metric: a, change: {dir: 1}}]",
            "did you mean 'direction'?",
        ),
        (
            BASE.replace("test: ", "tset: "),
            "",
            [],
            "configs/fares.yaml:5, data.splits.tset",
            "did you mean 'test'?",
        ),
    ],
)
def test_an_unknown_key_names_its_layer_and_the_nearest_key(
    project: Path, base: str, overlay: str, overrides: list, where: str, hint: str
) -> None:
    (project / "configs" / "fares.yaml").write_text(base)
    profile(project, overlay or "description: x")

    with pytest.raises(ConfigError) as caught:
        load_config("fares", profile="gpu", overrides=overrides, cwd=project)

    message = str(caught.value)
    assert where in message
    assert hint in message


def test_a_key_that_is_far_from_all_lists_them(project: Path) -> None:
    with pytest.raises(ConfigError, match="Unknown key 'qqq'") as caught:
        load_config("fares", overrides=["data.qqq=1"], cwd=project)

    assert "one of dir, splits" in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_a_missing_key_names_the_section_s_place(project: Path) -> None:
    profile(project, "label: null\n")
    (project / "configs" / "fares.yaml").write_text(
        BASE.replace("  dir: data/fares\n", "")
    )

    with pytest.raises(ConfigError, match="2 problems") as caught:
        load_config("fares", profile="gpu", cwd=project)

    message = str(caught.value)
    assert "configs/fares.yaml:3, data.dir: The key 'dir' is missing" in message
    assert "configs/profiles/gpu.yaml:1, label: Invalid value for label" in message


def test_all_problems_are_listed_up_to_five(project: Path) -> None:
    overrides = [f"train.{key}=x" for key in ("epochs", "batch_size", "seed")]
    overrides += ["name=A", "model=3", "label.feature=4", "description=5"]

    with pytest.raises(ConfigError, match="The config has 7 problems") as caught:
        load_config("fares", overrides=overrides, cwd=project)

    message = str(caught.value)
    assert "and 2 more" in message
    assert len(message.splitlines()) == 7
    assert caught.value.exit_code == 2


def test_a_problem_says_expected_and_found(project: Path) -> None:
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
        ("train=3", "a mapping", None),
        ("evaluate.slices=3", "a list", None),
    ],
)
def test_a_value_of_the_wrong_type_says_how_to_write_it(
    project: Path, override: str, expected: str, hint: str | None
) -> None:
    with pytest.raises(ConfigError, match="Invalid value for ") as caught:
        load_config("fares", overrides=[override], cwd=project)

    assert caught.value.expected == expected
    assert (caught.value.hint or "").startswith(hint or "")
    assert (caught.value.hint is None) == (hint is None)


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
def test_another_version_is_refused(project: Path, line: str, found: str) -> None:
    text = BASE.replace("version: 1", line) + "unknown_key_of_version_2: 3\n"
    (project / "configs" / "fares.yaml").write_text(text)

    with pytest.raises(ConfigError, match="cannot read the config's version") as caught:
        load_config("fares", cwd=project)

    assert caught.value.where == "configs/fares.yaml:1, version"
    assert caught.value.expected == "version: 1"
    assert found in str(caught.value.actual)


def test_a_config_must_say_its_version(project: Path) -> None:
    (project / "configs" / "fares.yaml").write_text(BASE.replace("version: 1\n", ""))

    with pytest.raises(ConfigError, match="has no version") as caught:
        load_config("fares", cwd=project)

    assert "configs/fares.yaml" in str(caught.value)
    assert "write 'version: 1'" in str(caught.value)


def test_an_empty_profile_is_named(project: Path) -> None:
    profile(project, "# nothing yet\n")

    with pytest.raises(ConfigError, match="is empty") as caught:
        load_config("fares", profile="gpu", cwd=project)

    assert caught.value.where == "configs/profiles/gpu.yaml"


def test_loading_imports_no_tensorflow_and_no_tfx(project: Path) -> None:
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


def test_a_loaded_config_is_frozen(project: Path) -> None:
    config: Config = load_config("fares", cwd=project)

    with pytest.raises(ValueError, match="frozen"):
        config.train.epochs = 3


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "model_params.x=.inf",
            "Invalid value for model_params.x.[\\s\\S]*a finite number",
        ),
        ("model_params.x=.nan", "found: +nan"),
        ("model_params.x={a: [1.0, {b: -.inf}]}", "at .a\\[1\\].b is -inf"),
        (
            "evaluate.metrics=[{class: AUC, params: {k: .inf}}]",
            "Invalid value for evaluate.metrics\\[0\\].params.k",
        ),
    ],
)
def test_numbers_that_json_does_not_know_are_refused(
    project: Path, override: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load_config("fares", overrides=[override], cwd=project)
    assert f"--set {override}" in str(caught.value)
    assert caught.value.exit_code == 2
