from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import ConfigError, UsageError
from sluice.project import (
    OWN_PACKAGES,
    activate,
    check_imports,
    find_root,
    find_user_code,
    own_root,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    return tmp_path.resolve()


@pytest.fixture
def clean_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_find_root_is_the_nearest_directory_with_configs(project: Path) -> None:
    inner = project / "team" / "project"
    (inner / "configs" / "profiles").mkdir(parents=True)

    assert find_root(project) == project
    assert find_root(project / "configs" / "taxi.yaml") == project
    assert find_root(project / "team") == project
    assert find_root(inner / "configs" / "profiles" / "gpu.yaml") == inner


def test_find_root_follows_links(project: Path, tmp_path_factory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(project)

    assert find_root(link) == project


def test_find_root_outside_a_project_says_what_makes_one(tmp_path: Path) -> None:
    write(tmp_path / "configs", "a file of that name is no project")

    with pytest.raises(UsageError, match="not inside a project") as caught:
        find_root(tmp_path)

    assert str(tmp_path) in str(caught.value)
    assert "mkdir configs" in str(caught.value)


def test_own_root_holds_the_own_packages() -> None:
    assert (own_root() / "sluice" / "project.py").is_file()
    assert len(set(OWN_PACKAGES)) == 8


def test_activate_makes_user_code_importable(project: Path, clean_path: None) -> None:
    write(project / "activated_models" / "small.py", "ANSWER = 42")

    activate(project)
    activate(project)

    assert sys.path.count(str(project)) == 1
    assert importlib.import_module("activated_models.small").ANSWER == 42


def test_a_package_that_comes_before_ours_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_imports(OWN_PACKAGES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "serving", raising=False)
    (tmp_path / "serving" / "1").mkdir(parents=True)
    check_imports(OWN_PACKAGES)  # A folder of models is no package.

    hiding = write(tmp_path / "serving" / "__init__.py")
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="'serving' shadows Sluice's") as caught:
        check_imports(("sluice", "serving"))
    assert str(hiding) in str(caught.value)


@pytest.mark.parametrize("name", OWN_PACKAGES)
@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
def test_activate_refuses_what_hides_our_packages(
    project: Path, clean_path: None, name: str, file: str
) -> None:
    hiding = write(project / file.format(name))

    with pytest.raises(ConfigError, match=f"{name!r} shadows Sluice's") as caught:
        activate(project)

    assert str(hiding) in str(caught.value)
    assert f"my_{name}" in str(caught.value)
    assert str(project) not in sys.path


def test_activate_allows_folders_without_code(project: Path, clean_path: None) -> None:
    write(project / "schemas" / "mine" / "schema.pbtxt")

    activate(project)

    assert str(project) in sys.path


def test_activate_allows_our_own_checkout(clean_path: None) -> None:
    activate(own_root())

    assert str(own_root()) in sys.path


@pytest.mark.parametrize(
    "source",
    [
        "def build_model(inputs, params): ...",
        "@cache\ndef build_model(inputs, params): ...",
        "class build_model: ...",
        "from other import build_model",
        "from other import make as build_model",
        "from other import *",
        "build_model = functools.partial(make, 3)",
        "build_model: Callable = make",
        "make, build_model = pair()",
        "try:\n    from fast import build_model\nexcept ImportError:\n    pass",
        "try:\n    import fast\nexcept ImportError:\n    def build_model(): ...",
        "if FAST:\n    pass\nelse:\n    def build_model(): ...",
        "def __getattr__(name): ...",
    ],
)
def test_find_user_code_sees_all_ways_to_bind_a_name(
    project: Path, source: str
) -> None:
    file = write(project / "mine" / "models.py", source)

    assert find_user_code(project, "mine.models:build_model") == file


def test_find_user_code_finds_packages_and_modules(project: Path) -> None:
    package = write(project / "mine" / "__init__.py", "def f(): ...")
    module = write(project / "single.py", "def f(): ...")
    nested = write(project / "a" / "b" / "__init__.py", "def f(): ...")

    assert find_user_code(project, "mine:f") == package
    assert find_user_code(project, "single:f") == module
    assert find_user_code(project, "a.b:f") == nested


def test_find_user_code_finds_installed_code(project: Path) -> None:
    own = find_user_code(project, "sluice.project:find_root")

    assert own == own_root() / "sluice" / "project.py"
    assert find_user_code(project, "json.decoder:JSONDecoder").name == "decoder.py"


def test_find_user_code_prefers_the_project(project: Path) -> None:
    shadowing = write(project / "json" / "__init__.py", "def f(): ...")

    assert find_user_code(project, "json:f") == shadowing


def test_find_user_code_runs_and_imports_nothing() -> None:
    program = (
        "import sys, pathlib\n"
        "from sluice.project import find_user_code\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "print(find_user_code(root, 'tensorflow.python.eager.context:context').name)\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(own_root())],
        cwd=own_root(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "context.py\n"), result.stderr


@pytest.mark.parametrize(
    "reference",
    ["build_model", "models.py:build_model:x", "a:b.c", ":f", "a:", "a b:f", "a/b:f"],
)
def test_find_user_code_says_what_an_import_path_is(
    project: Path, reference: str
) -> None:
    with pytest.raises(ConfigError, match="is not an import path") as caught:
        find_user_code(project, reference)

    assert "package.module:function" in str(caught.value)


def test_find_user_code_names_the_file_that_is_missing(project: Path) -> None:
    write(project / "mine" / "__init__.py")

    with pytest.raises(ConfigError, match="no module 'mine.modles'") as caught:
        find_user_code(project, "mine.modles:build_model")

    assert "mine/modles.py" in str(caught.value)
    assert str(project) in str(caught.value)


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("mine.modles", "did you mean 'mine.models'?"),
        ("mien.models", "did you mean 'mine.models'?"),
        ("mien.other", "check the spelling, or create the file"),
        ("tfx.component", "did you mean 'tfx.components'?"),
    ],
)
def test_find_user_code_suggests_a_module_that_exists(
    project: Path, module: str, hint: str
) -> None:
    write(project / "mine" / "__init__.py")
    write(project / "mine" / "models.py")

    with pytest.raises(ConfigError, match="there is no module") as caught:
        find_user_code(project, f"{module}:build_model")

    assert caught.value.hint == hint


def test_find_user_code_takes_py_for_a_module_that_is_missing(project: Path) -> None:
    write(project / "models.py", "def build_model(): ...")

    with pytest.raises(ConfigError, match=r"no module 'models\.py'"):
        find_user_code(project, "models.py:build_model")


def test_find_user_code_names_the_nearest_function(project: Path) -> None:
    write(project / "mine.py", "def build_model(): ...\ndef other(): ...")

    with pytest.raises(ConfigError, match="no function 'buld_model'") as caught:
        find_user_code(project, "mine:buld_model")

    message = str(caught.value)
    assert str(project / "mine.py") in message
    assert "one of build_model, other" in message
    assert "did you mean mine:build_model?" in message


def test_find_user_code_does_not_take_a_method_for_a_function(project: Path) -> None:
    write(project / "mine.py", "class Models:\n    def build_model(self): ...")

    with pytest.raises(ConfigError, match="no function 'build_model'"):
        find_user_code(project, "mine:build_model")


def test_find_user_code_gives_the_line_of_a_syntax_error(project: Path) -> None:
    file = write(project / "mine.py", "x = 1\ndef build_model(:\n    pass\n")

    with pytest.raises(ConfigError, match="is not valid Python") as caught:
        find_user_code(project, "mine:build_model")

    assert f"{file}:2" in str(caught.value)


def test_find_user_code_refuses_a_file_of_null_bytes(project: Path) -> None:
    write(project / "mine.py", "x = 1\0")

    with pytest.raises(ConfigError, match="is not valid Python"):
        find_user_code(project, "mine:build_model")
