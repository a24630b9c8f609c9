"""``sluice doctor``: checks of Python and packages."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from runners.doctor.check import Check
from runners.doctor.locked_packages import check_locked_packages
from runners.doctor.versions import check_keras_flavour
from tests.runners.doctor.check_process import import_of, in_a_process

pytestmark = pytest.mark.unit


def test_a_python_outside_the_environment_is_a_warning() -> None:
    found = in_a_process(
        import_of("check_python", "versions"),
        python=os.path.realpath(sys.executable),
    )
    assert found.state == "warning"
    assert found.found.endswith("not the project's environment")
    assert "make setup" in (found.hint or "")


def write_lock(root: Path, name: str, *lines: str) -> None:
    (root / "requirements").mkdir(exist_ok=True)
    entries = [f"{line} \\\n    --hash=sha256:00\n    # via x\n" for line in lines]
    (root / "requirements" / name).write_text("# made\n" + "".join(entries))


def test_installed_packages_match_the_lock(tmp_path: Path) -> None:
    write_lock(
        tmp_path,
        "tfx-9.txt",
        f"click=={version('click')}",
        f"PyYAML=={version('PyYAML')}",
        "nowhere==1.0 ; python_version < '3.0'",
    )
    assert check_locked_packages(tmp_path) == Check(
        "lock", "ok", "requirements/tfx-9.txt: all 2 as locked"
    )


def test_packages_that_differ_from_the_lock_are_named(
    tmp_path: Path,
) -> None:
    write_lock(
        tmp_path, "tfx-9.txt", "click==0.0.1", "no-such==2", f"rich=={version('rich')}"
    )
    assert check_locked_packages(tmp_path) == Check(
        "lock",
        "warning",
        "requirements/tfx-9.txt: 2 of 3 differ: "
        f"click is {version('click')}, locked is 0.0.1; no-such 2 is not installed",
        "make setup",
    )


def test_the_nearest_lock_is_compared_and_five_differences_are_listed(
    tmp_path: Path,
) -> None:
    far = [f"no-such-{i}==1" for i in range(9)]
    write_lock(tmp_path, "tfx-8.txt", *far)
    write_lock(tmp_path, "tfx-9.txt", f"rich=={version('rich')}", *far[:8])
    found = check_locked_packages(tmp_path).found
    assert found.startswith("requirements/tfx-9.txt: 8 of 9 differ: no-such-0 1 is not")
    assert found.endswith("no-such-4 1 is not installed; and 3 more")


def test_a_missing_and_an_unreadable_lock(tmp_path: Path) -> None:
    assert "there is no" in check_locked_packages(tmp_path).found
    write_lock(tmp_path, "tfx-9.txt", "click=?1")
    found = check_locked_packages(tmp_path)
    assert found.state == "problem"
    assert found.found.startswith("a lock is unreadable: ")


def test_missing_packages_are_a_problem() -> None:
    found = in_a_process(
        import_of("check_tfx_versions", "versions"),
        python=os.path.realpath(sys.executable),
    )
    assert found.state == "problem"
    assert found.found.startswith("not installed: tfx, tensorflow, apache-beam")


def test_the_pure_python_protobuf_is_a_warning() -> None:
    code = import_of("check_protobuf_runtime", "versions")
    variable = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
    found = in_a_process(code, **{variable: "python"})
    assert (found.state, found.found) == (
        "warning",
        f"{version('protobuf')}, python",
    )
    assert variable in (found.hint or "")


def test_an_environment_with_keras_3_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert check_keras_flavour().state == "ok"
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    found = check_keras_flavour()
    assert found.state == "warning"
    assert "the environment says TF_USE_LEGACY_KERAS=0" in found.found
