"""``sluice doctor``: each check once, and what the command says and returns."""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from runners.cli import doctor as checks

pytestmark = pytest.mark.unit


@pytest.fixture
def tensorflow_that(monkeypatch):
    """Stands for the installed TensorFlow; without code, none can be imported."""

    def write(code=None):
        module = ModuleType("tensorflow")
        exec(code or "", vars(module))
        monkeypatch.setitem(sys.modules, "tensorflow", module if code else None)
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")

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
        (None, "problem", "TensorFlow cannot be imported"),
        (NO_GPU, "warning", "an NVIDIA driver is there, but no GPU is visible"),
        (
            TWO_GPUS,
            "ok",
            "1 CPU, 2 GPU (T4); train.strategy auto is mirrored, since several GPUs",
        ),
    ],
)
def test_devices(tensorflow_that, monkeypatch, code, state, found):
    tensorflow_that(code)
    monkeypatch.setattr(checks, "_DRIVER", Path("/dev/null"))
    check = checks.check_devices()
    assert (check.state, found in check.found) == (state, True), check


def test_a_problem_exits_with_2_and_json_has_every_check(tensorflow_that, capsys):
    tensorflow_that()
    assert checks.command.main(["--json"], standalone_mode=False) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["schema_version"], report["ok"]) == (1, False)
    packages, devices = report["checks"]
    assert (packages["check"], devices["state"]) == ("packages", "problem")
    assert set(devices) == {"check", "state", "found", "hint"}


def test_warnings_exit_with_0(tensorflow_that, monkeypatch, capsys):
    tensorflow_that(NO_GPU)
    monkeypatch.setattr(checks, "_DRIVER", Path("/dev/null"))
    assert checks.command.main([], standalone_mode=False) == 0
    assert "1 warning" in capsys.readouterr().out.splitlines()[-1]
