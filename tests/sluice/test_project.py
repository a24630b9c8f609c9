"""Project root, hidden packages, and user code that is found without importing it."""

from __future__ import annotations

import importlib
import sys

import pytest

from sluice.errors import ConfigError, UsageError
from sluice.project import (
    OWN_PACKAGES,
    activate,
    check_imports,
    find_root,
    find_user_code,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "configs").mkdir()
    return tmp_path.resolve()


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_find_root_is_the_nearest_directory_with_configs(project, tmp_path_factory):
    inner = project / "team" / "project"
    (inner / "configs" / "profiles").mkdir(parents=True)
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(project)
    assert find_root(project / "configs" / "taxi.yaml") == project
    assert find_root(project / "team") == find_root(link) == project
    assert find_root(inner / "configs" / "profiles" / "gpu.yaml") == inner
    outside = tmp_path_factory.mktemp("outside")
    write(outside / "configs", "a file of that name is no project")
    with pytest.raises(UsageError, match="mkdir configs"):
        find_root(outside)


@pytest.mark.parametrize("file", ["serving.py", "sluice/__init__.py"])
def test_activate_refuses_what_hides_our_packages(project, file):
    hiding = write(project / file)
    with pytest.raises(ConfigError, match=r"shadows Sluice's[\s\S]*my_s") as caught:
        activate(project)
    assert caught.value.where == str(hiding)
    assert str(project) not in sys.path


def test_a_package_that_comes_before_ours_is_named(tmp_path, monkeypatch):
    check_imports(OWN_PACKAGES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "serving", raising=False)
    (tmp_path / "serving" / "1").mkdir(parents=True)
    check_imports(OWN_PACKAGES)  # A folder of models is no package.
    hiding = write(tmp_path / "serving" / "__init__.py")
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="'serving' shadows Sluice's") as caught:
        check_imports(("sluice", "serving"))
    assert caught.value.where == str(hiding)


@pytest.mark.parametrize(
    "source",
    [
        "def build_model(inputs, params): ...",
        "from other import make as build_model",
        "make, build_model = pair()",
        "try:\n    import fast\nexcept ImportError:\n    def build_model(): ...",
        "def __getattr__(name): ...",
    ],
)
def test_find_user_code_sees_all_ways_to_bind_a_name(project, source):
    file = write(project / "mine" / "models.py", source)
    assert find_user_code(project, "mine.models:build_model") == file


@pytest.mark.parametrize(
    ("reference", "text", "says"),
    [
        ("build_model", "", "not an import path[\\s\\S]*package.module:function"),
        ("mien:f", "", "no module 'mien', neither .*/mien.py"),
        ("mine:buld", "def build(): ...", "no function 'buld'[\\s\\S]*'build'"),
        ("mine:f", "class A:\n    def f(self): ...", "no function 'f' in .*/mine.py"),
        ("mine:f", "x = 1\ndef f(:\n    pass", "not valid Python[\\s\\S]*mine.py:2"),
    ],
)
def test_find_user_code_says_what_is_wrong(project, reference, text, says):
    write(project / "mine.py", text)
    with pytest.raises(ConfigError, match=says):
        find_user_code(project, reference)
