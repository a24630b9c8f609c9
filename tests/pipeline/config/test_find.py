"""Configs and profiles are found by name or path."""

from __future__ import annotations

import pytest

from pipeline.config.load import load_config
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit


def test_a_name_is_found_from_anywhere_in_the_project(project):
    inner = project / "notebooks" / "deep"
    inner.mkdir(parents=True)

    config = load_config("fares", cwd=inner)

    assert config.name == "fares"
    assert config.root == project
    assert config.data_dir == project / "data" / "fares"
    assert config.schema_path == project / "schemas" / "fares" / "schema.pbtxt"
    assert config.serving_dir is None


def test_a_path_needs_no_cwd_in_the_project(project, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("cron")

    absolute = load_config(str(project / "configs" / "fares.yaml"), cwd=elsewhere)
    relative = load_config("configs/fares.yaml", cwd=project)
    bare = load_config("fares.yaml", cwd=project / "configs")

    assert absolute.root == relative.root == bare.root == project
    assert absolute.origin.file == str(project / "configs" / "fares.yaml")
    assert relative.origin.file == "configs/fares.yaml"


def test_a_symlinked_config_belongs_to_the_project_with_the_link(
    project, tmp_path_factory, config_text
):
    target = tmp_path_factory.mktemp("store") / "shared.yaml"
    target.write_text(config_text.replace("fares", "linked", 1))
    (project / "configs" / "linked.yaml").symlink_to(target)

    assert load_config("linked", cwd=project).root == project


def test_a_name_falls_back_to_the_configs_of_sluice(tmp_path):
    config = load_config("digits", cwd=tmp_path)

    assert config.root == own_root()


def test_a_project_s_own_config_comes_first(project, config_text):
    (project / "configs" / "digits.yaml").write_text(
        config_text.replace("fares", "digits", 1)
    )

    assert load_config("digits", cwd=project).root == project


def test_an_unknown_name_lists_the_configs_and_the_nearest(project):
    with pytest.raises(UsageError, match="there is no config 'fare'") as caught:
        load_config("fare", cwd=project)

    message = str(caught.value)
    assert str(project / "configs") in message
    assert _listed("configs", "fares") in message
    assert "did you mean 'fares'?" in message
    assert not isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("path", ["configs/none.yaml", "none.yml", "configs/profiles/"])
def test_a_path_without_a_file_is_named(project, path):
    with pytest.raises(UsageError, match="config file does not exist") as caught:
        load_config(path, cwd=project)

    assert str(project / path) in str(caught.value)


def test_a_config_outside_a_project_says_how_to_make_one(tmp_path, config_text):
    (tmp_path / "alone.yaml").write_text(config_text)

    with pytest.raises(UsageError, match="not inside a project") as caught:
        load_config("alone.yaml", cwd=tmp_path)

    assert "mkdir configs" in str(caught.value)


def test_sluice_s_own_profiles_are_there_for_every_project(project):
    config = load_config("fares", profile="quick", cwd=project)

    assert config.train.epochs == 2
    assert config.origin.profile == str(own_root() / "configs/profiles/quick.yaml")


def test_an_unknown_profile_lists_those_there_are(project, profile):
    profile("train: {epochs: 1}\n", "mine")

    with pytest.raises(UsageError, match="no profile 'qick'") as caught:
        load_config("fares", profile="qick", cwd=project)

    assert _listed("configs/profiles", "mine") in str(caught.value)
    assert "did you mean 'quick'?" in str(caught.value)


def _listed(folder: str, name: str) -> str:
    """Returns the list of Sluice's own names in a folder and one of the project."""
    names = {path.stem for path in (own_root() / folder).glob("*.yaml")} | {name}
    return f"one of {', '.join(sorted(names))}"
