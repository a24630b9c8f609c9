"""Imports of the verbs: TensorFlow and pydantic only where they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.unit

SCRIPT = """
import sys
from runners.cli.main import cli

def check(modules, *arguments):
    cli.main(list(arguments), standalone_mode=False)
    assert not modules & set(sys.modules), (arguments, modules & set(sys.modules))

heavy = {"tensorflow", "tfx", "apache_beam"}
check(heavy | {"ml_metadata", "pydantic"}, "--help")
for verb in "config", "status", "runs", "logs":
    check(heavy | {"ml_metadata"}, verb, "digits")
for verb in "models list", "lineage", "gc":
    check(heavy | {"numpy"}, *verb.split(), "digits", *["v1"] * (verb == "lineage"))
check(heavy, "schema", "show", "digits")
import runners.cli.ui
assert not (heavy | {"tensorboard"}) & set(sys.modules)
"""


def test_read_only_verbs_import_no_tensorflow(past, project):
    run_dir = past.workspace.run_dir(past.run(push=True))
    (run_dir / "logs" / "start.log").write_text("started")
    for name in ("schemas", "data"):
        (past.root / name).symlink_to(project / name)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=past.root,
        env={"PYTHONPATH": str(own_root()), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_run_imports_nothing_slow_before_it_prewarms():
    """The import of TFX, in a process beside it, takes the longest: it begins first."""
    script = (
        "import sys, runners.cli.main, runners.cli.run\n"
        "print({'pydantic', 'ruamel', 'ml_metadata', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=own_root(), capture_output=True, text=True
    )
    assert done.stdout.strip() == "set()", done.stderr
