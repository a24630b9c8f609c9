"""``sluice doctor``: each check once, and what the command says and returns."""

import json
import os
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from runners.cli import doctor as checks

pytestmark = pytest.mark.unit
GIB = 2**30


@pytest.fixture
def tensorflow_that(tmp_path, monkeypatch):
    """Puts a module named tensorflow before the installed one, for child processes."""

    def write(code):
        folder = tmp_path / "instead"
        folder.mkdir()
        (folder / "tensorflow.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return write


@pytest.mark.parametrize(
    ("lock", "state", "found"),
    [
        (f"click=={version('click')} \\\n    --hash=sha256:00\n", "ok", "all 1 as"),
        (
            "click==0.0.1\nno-such[extra]==2\n",
            "warning",
            f"2 of 2 differ: click is {version('click')}, locked is 0.0.1; "
            "no-such is not installed, locked is 2",
        ),
        ("\n".join(f"no-such-{i}==1" for i in range(8)), "warning", "; and 3 more"),
    ],
)
def test_packages(tmp_path, lock, state, found):
    (tmp_path / "requirements").mkdir()
    minor = ".".join(version("tfx").split(".")[:2])
    (tmp_path / "requirements" / f"tfx-{minor}.txt").write_text(lock)
    check = checks.check_packages(tmp_path)
    assert (check.state, found in check.found) == (state, True), check


@pytest.mark.parametrize(
    ("free", "state"), [(3 * GIB, "ok"), (GIB, "warning"), (2**20, "problem")]
)
def test_space_on_a_disk(tmp_path, monkeypatch, free, state):
    usage = SimpleNamespace(free=free, total=4 * GIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert checks.check_disk("disk_temp", tmp_path / "not" / "there").state == state
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert checks.check_disk("x", tmp_path / "file" / "digits").state == "problem"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert checks.check_disk("x", tmp_path).state == "problem"


TWO_GPUS = """
class config:
    list_physical_devices = lambda: [
        type("Device", (), {"device_type": kind}) for kind in ("CPU", "GPU", "GPU")
    ]

    class experimental:
        get_device_details = lambda device: (
            {"device_name": "T4"} if device.device_type == "GPU" else {}
        )
"""
NO_GPU = "class config: list_physical_devices = lambda: []"


@pytest.mark.parametrize(
    ("code", "state", "found"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "problem",
            "the import of TensorFlow was killed by signal 11 (SIGSEGV, segmentation "
            "fault)",
        ),
        (
            "raise ImportError('libcudart.so.12: cannot open')",
            "problem",
            "ended its process with status 1: ImportError: libcudart.so.12: cannot",
        ),
        ("import time; time.sleep(60)", "problem", "timed out after 5 seconds"),
        (NO_GPU, "warning", "an NVIDIA driver is there, but no GPU is visible"),
        (
            TWO_GPUS,
            "ok",
            "1 CPU, 2 GPU (T4); train.strategy auto is mirrored, since several GPUs",
        ),
    ],
)
def test_devices(tensorflow_that, tmp_path, monkeypatch, code, state, found):
    tensorflow_that(code)
    monkeypatch.setattr(checks, "_TIME_LIMIT_S", 5)
    monkeypatch.setattr(checks, "_DRIVER", Path("/dev/null"))
    check = list(checks.run_checks(tmp_path))[-1]
    assert (check.state, found in check.found) == (state, True), check


def test_a_problem_exits_with_2_and_json_has_every_check(tmp_path, monkeypatch, capsys):
    def fail(name, folder):
        raise OSError("no disk")

    monkeypatch.setattr(checks, "check_disk", fail)
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path)
    done = subprocess.CompletedProcess("", 0, '[["CPU", {}]]', "")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
    assert checks.command.main(["--json"], standalone_mode=False) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["schema_version"], report["ok"]) == (1, False)
    rows = {row["check"]: row for row in report["checks"]}
    assert list(rows) == [
        *("packages", "disk_workspace", "disk_temp", "memory", "devices")
    ]
    assert set(rows["memory"]) == {"check", "state", "found", "hint"}
    assert rows["disk_temp"]["found"] == "the check itself failed: OSError: no disk"


def test_warnings_exit_with_0(tmp_path, monkeypatch, tensorflow_that, capsys):
    tensorflow_that(TWO_GPUS)
    monkeypatch.setattr(checks, "free_memory_bytes", lambda: 1_500_000_000)
    arguments = ["--workspace", str(tmp_path)]
    assert checks.command.main(arguments, standalone_mode=False) == 0
    out = capsys.readouterr().out
    assert "warning  memory          1.5 GB available of" in out
    assert "1 warning" in out.splitlines()[-1] and "problem" not in out
