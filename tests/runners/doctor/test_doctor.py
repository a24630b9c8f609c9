"""``sluice doctor``: checks of packages, memory, processes, credentials and devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

import pytest

from runners.cli.doctor import doctor
from runners.doctor.check import Check
from runners.doctor.devices import check_devices
from runners.doctor.locked_packages import check_locked_packages
from runners.doctor.machine import check_cloud_credentials, check_cores, check_memory
from runners.doctor.run_checks import run_checks
from runners.doctor.versions import check_keras_flavour
from sluice.machine_resources import CgroupLimits
from sluice.project import own_root

unit = pytest.mark.unit
GIB = 2**30


def in_a_process(
    code: str, *, python: str = sys.executable, prepare: str = "", **env: str
) -> Check:
    """Runs code that ends with a check as its last line, in a process of its own."""
    *before, call = code.splitlines()
    lines = [
        *before,
        "import json, dataclasses",
        prepare,
        f"print(json.dumps(dataclasses.asdict({call})))",
    ]
    done = subprocess.run(
        [python, "-c", "\n".join(lines)],
        cwd=own_root(),
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return Check(**json.loads(done.stdout))


def import_of(function: str, module: str, call: str = "") -> str:
    return f"from runners.doctor.{module} import {function}\n{call or function + '()'}"


@pytest.fixture
def tensorflow_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Puts a module named tensorflow before the installed one, for child processes."""

    def write(code: str) -> None:
        folder = tmp_path / "instead"
        folder.mkdir()
        (folder / "tensorflow.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return write


# Python and packages


@unit
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


@unit
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


@unit
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


@unit
def test_the_nearest_lock_is_compared_and_five_differences_are_listed(
    tmp_path: Path,
) -> None:
    far = [f"no-such-{i}==1" for i in range(9)]
    write_lock(tmp_path, "tfx-8.txt", *far)
    write_lock(tmp_path, "tfx-9.txt", f"rich=={version('rich')}", *far[:8])
    found = check_locked_packages(tmp_path).found
    assert found.startswith("requirements/tfx-9.txt: 8 of 9 differ: no-such-0 1 is not")
    assert found.endswith("no-such-4 1 is not installed; and 3 more")


@unit
def test_a_missing_and_an_unreadable_lock(tmp_path: Path) -> None:
    assert "there is no" in check_locked_packages(tmp_path).found
    write_lock(tmp_path, "tfx-9.txt", "click=?1")
    found = check_locked_packages(tmp_path)
    assert found.state == "problem"
    assert found.found.startswith("a lock is unreadable: ")


@unit
def test_missing_packages_are_a_problem() -> None:
    found = in_a_process(
        import_of("check_tfx_versions", "versions"),
        python=os.path.realpath(sys.executable),
    )
    assert found.state == "problem"
    assert found.found.startswith("not installed: tfx, tensorflow, apache-beam")


@unit
def test_the_pure_python_protobuf_is_a_warning() -> None:
    code = import_of("check_protobuf_runtime", "versions")
    variable = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
    found = in_a_process(code, **{variable: "python"})
    assert (found.state, found.found) == (
        "warning",
        f"{version('protobuf')}, python",
    )
    assert variable in (found.hint or "")


@unit
def test_an_environment_with_keras_3_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert check_keras_flavour().state == "ok"
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    found = check_keras_flavour()
    assert found.state == "warning"
    assert "the environment says TF_USE_LEGACY_KERAS=0" in found.found


# Memory, cores, processes


@unit
@pytest.mark.parametrize(
    ("left", "state"), [(1.5, "warning"), (0.5, "problem"), (0, "problem")]
)
def test_the_memory_limit_of_a_container_counts(left: float, state: str) -> None:
    limits = CgroupLimits(2 * GIB, int(left * GIB))
    found = check_memory(limits)
    assert found.state == state
    assert "the cgroup allows 2.0 GiB" in found.found
    assert found.hint


@unit
def test_memory_and_cores_of_this_machine() -> None:
    assert " available of " in check_memory().found
    assert check_cores(CgroupLimits()).found.startswith(
        f"{len(os.sched_getaffinity(0))} of "
    )


@unit
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


@unit
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


@pytest.fixture
def no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    folder = tmp_path / "gcloud"
    folder.mkdir()
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    return folder


@unit
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


@unit
def test_credentials_that_do_not_exist_are_a_warning(
    no_credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(no_credentials / "key"))
    found = check_cloud_credentials()
    assert found.state == "warning"
    assert found.found.endswith("gcloud/key, which is not a readable file")


# Devices


@unit
@pytest.mark.parametrize(
    ("code", "found"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "the process that imports TensorFlow was killed by SIGSEGV",
        ),
        (
            "raise ImportError('libcudart.so.12: cannot open')",
            "the process that imports TensorFlow ended with exit code 1: "
            "ImportError: libcudart.so.12: cannot open",
        ),
        ("import os; os._exit(9)", "ended with exit code 9"),
    ],
)
def test_a_tensorflow_that_fails_to_import_is_a_problem(
    tensorflow_that: Callable[[str], None], code: str, found: str
) -> None:
    tensorflow_that(code)
    check = check_devices()
    assert check.state == "problem"
    assert found in check.found
    assert 'import tensorflow"' in (check.hint or "")


@unit
def test_a_tensorflow_that_hangs_is_a_problem(
    tensorflow_that: Callable[[str], None],
) -> None:
    tensorflow_that("import time; time.sleep(60)")
    found = check_devices(time_limit_s=1)
    assert found.state == "problem"
    assert found.found == "TensorFlow did not answer within 1 s"


TWO_GPUS = """
class Device:
    def __init__(self, device_type):
        self.device_type = device_type

class config:
    list_physical_devices = lambda: [Device("CPU"), Device("GPU"), Device("GPU")]

    class experimental:
        get_device_details = lambda device: (
            {"device_name": "T4"} if device.device_type == "GPU" else {}
        )

class sysconfig:
    get_build_info = dict
"""


@unit
@pytest.mark.parametrize(
    ("variables", "state", "found"),
    [
        ({}, "ok", "train.strategy auto is mirrored, since several GPUs are visible"),
        ({"TPU_NAME": "a"}, "ok", "train.strategy auto is tpu, since TPU_NAME is set"),
        ({"TF_CONFIG": "{"}, "warning", "TF_CONFIG cannot be read"),
    ],
)
def test_devices_and_the_strategy_for_them(
    tensorflow_that: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    state: str,
    found: str,
) -> None:
    tensorflow_that(TWO_GPUS)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    check = check_devices(driver=())
    assert (check.state, check.found) == (state, f"1 CPU, 2 GPU (T4); {found}")


@pytest.mark.tf
def test_the_real_tensorflow_and_a_driver_without_a_visible_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    driver = tmp_path / "version"
    driver.touch()
    found = check_devices(driver=(tmp_path / "none", driver))
    assert found.state == "warning"
    assert found.found == (
        f"1 CPU; an NVIDIA driver is there ({driver}), but no GPU is visible"
    )
    assert found.hint == "CUDA_VISIBLE_DEVICES=-1 hides it: unset it"


# All of it


@unit
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


@unit
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


@unit
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


@unit
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
