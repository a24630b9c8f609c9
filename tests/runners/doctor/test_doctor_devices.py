"""``sluice doctor``: checks of TensorFlow and its devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runners.doctor.devices import check_devices

unit = pytest.mark.unit


@unit
@pytest.mark.parametrize(
    ("code", "found"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "the import of TensorFlow was killed by signal 11 (SIGSEGV, segmentation "
            "fault)",
        ),
        (
            "raise ImportError('libcudart.so.12: cannot open')",
            "the import of TensorFlow ended its process with status 1: "
            "ImportError: libcudart.so.12: cannot open",
        ),
        ("import os; os._exit(9)", "ended its process with status 9"),
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
