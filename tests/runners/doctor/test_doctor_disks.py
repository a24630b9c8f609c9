"""``sluice doctor``: checks of the workspace's folder, locks and disks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.doctor.check import Check
from runners.doctor.disks import (
    check_disk_space,
    check_file_locks,
    check_workspace_folder,
)
from sluice.project import own_root

unit = pytest.mark.unit


@pytest.fixture
def on_tmpfs() -> Iterator[Callable[..., Check]]:
    """Runs a check on a file system of its own, mounted for that process alone."""
    tools = [shutil.which(tool) for tool in ("unshare", "mount")]
    if not all(tools) or subprocess.run(["unshare", "-Urm", "true"]).returncode:
        pytest.skip("this machine permits no mounts")

    def run(folder: Path, options: str, check: str, before: str = "true") -> Check:
        code = f"import json, dataclasses\nfrom pathlib import Path\n{check}"
        script = (
            f"mount -t tmpfs -o {options} tmpfs {folder} && cd {own_root()} && "
            f'{{ {before}; }} && exec {sys.executable} -c "$CODE"'
        )
        done = subprocess.run(
            ["unshare", "-Urm", "sh", "-c", script],
            env={**os.environ, "CODE": code},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return Check(**json.loads(done.stdout))

    yield run


def printed(module: str, function: str, arguments: str) -> str:
    return (
        f"from runners.doctor.{module} import {function}\n"
        f"print(json.dumps(dataclasses.asdict({function}({arguments}))))"
    )


@unit
def test_a_missing_workspace_is_not_created(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "workspace"
    found = check_workspace_folder(folder)
    assert found == Check("workspace", "ok", f"{folder}; the first run makes it")
    assert check_file_locks(folder) == Check(
        "file_locks", "ok", f"locks work in {tmp_path}"
    )
    assert list(tmp_path.iterdir()) == []


@unit
def test_a_file_in_place_of_the_workspace_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "workspace").touch()
    found = check_workspace_folder(tmp_path / "workspace" / "digits")
    assert found.state == "problem"
    assert found.found == f"{tmp_path}/workspace is not a directory"


@unit
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_a_folder_that_refuses_files_is_a_problem() -> None:
    assert check_workspace_folder(Path("/proc")).state == "problem"
    found = check_file_locks(Path("/proc"))
    assert found.state == "problem"
    assert "a file in /proc cannot be locked" in found.found


@pytest.mark.fault
def test_a_full_disk(tmp_path: Path, on_tmpfs: Callable[..., Check]) -> None:
    fill = f"head -c 10M /dev/zero > {tmp_path}/big 2>/dev/null || true"
    folder = f"Path('{tmp_path}')"
    written = on_tmpfs(
        tmp_path,
        "size=1m",
        printed("disks", "check_workspace_folder", folder),
        fill,
    )
    assert written.state == "problem"
    assert written.found == f"{tmp_path} cannot be written: No space left on device"
    space = on_tmpfs(
        tmp_path,
        "size=1m",
        printed("disks", "check_disk_space", f"'disk_workspace', {folder}"),
        fill,
    )
    assert space.state == "problem"
    assert space.found == f"0 MiB free of 1 MiB, {tmp_path}"
    assert "sluice gc" in (space.hint or "")


@pytest.mark.fault
@pytest.mark.parametrize(
    ("options", "state", "found"),
    [
        ("size=1g", "warning", "1.0 GiB free of 1.0 GiB, "),
        ("size=3g,nr_inodes=50", "problem", ", room for 49 files"),
        ("size=3g", "ok", "3.0 GiB free of 3.0 GiB, "),
    ],
)
def test_a_small_disk(
    tmp_path: Path,
    on_tmpfs: Callable[..., Check],
    options: str,
    state: str,
    found: str,
) -> None:
    arguments = f"'disk_temp', Path('{tmp_path}')"
    check = printed("disks", "check_disk_space", arguments)
    space = on_tmpfs(tmp_path, options, check)
    assert space.state == state
    assert found in space.found


@pytest.mark.fault
def test_a_disk_that_is_read_only(
    tmp_path: Path, on_tmpfs: Callable[..., Check]
) -> None:
    folder = f"Path('{tmp_path}')"
    check = printed("disks", "check_workspace_folder", folder)
    written = on_tmpfs(tmp_path, "size=1m,ro", check)
    assert written.state == "problem"
    assert written.found == f"{tmp_path} cannot be written: Read-only file system"


@unit
def test_the_disk_of_a_missing_folder_is_checked(tmp_path: Path) -> None:
    found = check_disk_space("disk_temp", tmp_path / "not" / "there").found
    assert found.endswith(f", {tmp_path}")
