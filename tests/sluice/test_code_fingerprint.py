"""Digests of the modules that code imports."""

from __future__ import annotations

import pytest

from sluice import code_fingerprint

pytestmark = pytest.mark.unit

FILES = {
    "app/__init__.py": "",
    "app/train.py": "import os\nfrom app import data\nfrom .models import cnn\n",
    "app/data.py": "import numpy\n",
    "app/models/__init__.py": "X = 1\n",
    "app/models/cnn.py": "from ..shapes import square\n",
    "app/models/dense.py": "",
    "app/shapes.py": "def square(): pass\n",
    "tests/test_train.py": "import app.train\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_are_followed_through_packages_and_relative_names(root):
    assert list(code_fingerprint.modules_of(["app.train"], [root])) == [
        "app",
        "app.data",
        "app.models",
        "app.models.cnn",
        "app.shapes",
        "app.train",
    ]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("app/shapes.py", {"app.shapes"}),
        ("app/models/__init__.py", {"app.models"}),
        ("tests/test_train.py", set()),
    ],
)
def test_a_change_in_what_runs_changes_the_digest_of_its_module(root, name, changed):
    before = code_fingerprint.digests_of(["app.train"], [root])
    (root / name).write_text("Y = 2\n")
    after = code_fingerprint.digests_of(["app.train"], [root])
    assert {name for name in before if before[name] != after[name]} == changed


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('importlib.import_module("app.shapes")', {"app.shapes"}),
        ('import_module(name="app.models.cnn")', {"app.models.cnn", "app.shapes"}),
        ('import_module(".shapes", __package__)', {"app.shapes"}),
        ('__import__("app.shapes", fromlist=["x"]).square', {"app.shapes"}),
        # Not seen, as the guide says.
        ("importlib.import_module(NAME)", set()),
        ('import_module("os"), import_module("no/such.x"), import_module("")', set()),
    ],
)
def test_imports_of_literals_are_followed(root, call, found):
    (root / "app/data.py").write_text(f"def f():\n    return {call}\n")
    modules = {*code_fingerprint.modules_of(["app.data"], [root])}
    assert modules - {"app.models"} == {"app", "app.data"} | found


def test_an_installed_entry_counts_with_its_whole_package(root, tmp_path, monkeypatch):
    package = tmp_path / "site" / "installed_models"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(package.parent))
    for name in ("__init__", "build", "layers"):
        (package / f"{name}.py").write_text("")
    before = code_fingerprint.digests_of(["installed_models.build"], [root])
    (package / "layers.py").write_text("a = 1\n")
    assert code_fingerprint.digests_of(["installed_models.build"], [root]) != before


def test_only_the_named_part_of_a_namespace_package_counts(root, tmp_path, monkeypatch):
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    for name in ("mine", "other"):
        package = site / "shared_namespace" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    entries = ["shared_namespace.mine.models"]
    before = code_fingerprint.digests_of(entries, [root])
    assert list(before) == ["shared_namespace.mine (installed)"]
    (site / "shared_namespace/other/__init__.py").write_text("a = 1\n")
    assert code_fingerprint.digests_of(entries, [root]) == before
    (site / "shared_namespace/mine/layers.py").write_text("a = 1\n")
    assert code_fingerprint.digests_of(entries, [root]) != before


def test_imports_inside_functions_count(root):
    (root / "app/data.py").write_text("def f():\n    import app.models.dense\n")
    assert "app.models.dense" in code_fingerprint.modules_of(["app.data"], [root])
