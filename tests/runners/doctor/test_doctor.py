"""``sluice doctor``: checks of memory, processes and credentials, and all of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest

from runners.cli.doctor import doctor
from runners.doctor.check import Check
from runners.doctor.machine import check_cloud_credentials, check_cores, check_memory
from runners.doctor.run_checks import run_checks
from sluice.machine_resources import CgroupLimits
from sluice.project import own_root
from tests.runners.doctor.check_process import import_of, in_a_process

pytestmark = pytest.mark.unit
GIB = 2**30


# Memory, cores, processes


@pytest.mark.parametrize(
    ("left", "state"), [(1.5, "warning"), (0.5, "problem"), (0, "problem")]
)
def test_the_memory_limit_of_a_container_counts(left: float, state: str) -> None:
    limits = CgroupLimits(2 * GIB, int(left * GIB))
    found = check_memory(limits)
    assert found.state == state
    assert "the cgroup allows 2.0 GiB" in found.found
    assert found.hint


def test_memory_and_cores_of_this_machine() -> None:
    assert " available of " in check_memory().found
    assert check_cores(CgroupLimits()).found.startswith(
        f"{len(os.sched_getaffinity(0))} of "
    )


def test_one_core_is_a_warning() -> None:
    pinned = in_a_process(
        import_of("check_cores", "machine"),
        prepare="import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})",
    )
    assert pinned.state == "warning"
    assert pinned.found.startswith("1 of ")
    quota = check_cores(CgroupLimits(cores=0.5))
    assert quota.state == "warning"
    assert quota.found.endswith("; the cgroup allows the time of 0.5")


def test_a_fork_that_fails_is_a_problem() -> None:
    """As another user where this is root, whom the limit does not bind."""
    found = in_a_process(
        import_of("check_forks", "machine"),
        prepare="import os, resource\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
        "os.getuid() or os.setuid(65534)",
    )
    assert found.state == "problem"
    assert found.found == "a fork failed: Resource temporarily unavailable"


# Credentials


def test_credentials_are_found_and_their_content_is_not_shown(
    no_credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_cloud_credentials().found.startswith("no credentials")
    default = no_credentials / "application_default_credentials.json"
    default.write_text('{"private": "do-not-show"}')
    assert check_cloud_credentials() == Check(
        "cloud", "ok", f"gcloud's default, {default}"
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(default))
    assert check_cloud_credentials() == Check(
        "cloud", "ok", f"GOOGLE_APPLICATION_CREDENTIALS names {default}"
    )


def test_credentials_that_do_not_exist_are_a_warning(
    no_credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(no_credentials / "key"))
    found = check_cloud_credentials()
    assert found.state == "warning"
    assert found.found.endswith("gcloud/key, which is not a readable file")


# All of it


def test_a_check_that_raises_is_a_problem(tmp_path: Path) -> None:
    """The folder in which the process stands is gone, and with it ``Path.cwd()``."""
    code = (
        "import os, sys\n"
        f"os.chdir({str(tmp_path)!r}); os.rmdir({str(tmp_path)!r})\n"
        f"sys.path[0] = {str(own_root())!r}\n"
        "from pathlib import Path\n"
        "from runners.doctor.run_checks import run_checks\n"
        "next(row for row in run_checks(Path('here')) if row.check == 'workspace')"
    )
    found = in_a_process(code)
    assert found.state == "problem"
    assert found.found.startswith("the check itself failed: FileNotFoundError: ")


def test_the_check_of_devices_comes_last(tmp_path: Path) -> None:
    rows = list(takewhile(lambda row: row.check != "disk_temp", run_checks(tmp_path)))
    assert [row.check for row in rows] == [
        "python",
        "lock",
        "versions",
        "beam",
        "protobuf",
        "keras",
        "workspace",
        "file_locks",
        "disk_workspace",
        "baselines",
        "serving",
    ]
    assert "fn_api_runner.FnApiRunner" in rows[3].found


def test_a_problem_exits_with_2_and_json_has_every_check(
    tmp_path: Path,
    no_credentials: Path,
    tensorflow_that: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tensorflow_that("raise ImportError('broken')")
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path / "configs")
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    assert doctor.main(["--json"], standalone_mode=False) == 2
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["schema_version"], report["ok"]) == (1, False)
    assert [set(row) for row in report["checks"]] == [
        {"check", "state", "found", "hint"}
    ] * len(report["checks"])
    rows = {row["check"]: row for row in report["checks"]}
    assert rows["workspace"]["found"].startswith(f"{tmp_path}/workspace")
    assert rows["devices"]["state"] == "problem"
    assert list(rows)[-1] == "devices"
    assert "ImportError: broken" in err
    assert "1 problem, " in err
    assert "Traceback" not in err


def test_warnings_exit_with_0(
    tmp_path: Path,
    no_credentials: Path,
    tensorflow_that: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tensorflow_that(
        "from types import SimpleNamespace as Names\n"
        "config = Names(list_physical_devices=lambda: [])\n"
        "sysconfig = Names(get_build_info=dict)\n"
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "none")
    assert doctor.main(["--workspace", str(tmp_path)], standalone_mode=False) == 0
    out = capsys.readouterr().out
    assert "warning  cloud           GOOGLE_APPLICATION_CREDENTIALS names none" in out
    assert "no problems, " in out
