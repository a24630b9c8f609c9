"""Lists the devices that TensorFlow finds, in a process of its own.

The import takes 10 to 30 s and may crash on a broken installation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from runners.doctor.check import Check
from sluice.errors import UsageError
from sluice.process_tree import describe_end
from sluice.project import own_root

_TIME_LIMIT_S = 180.0
_PROBE = """
import json
from sluice.compat import prepare_environment
prepare_environment()
import tensorflow as tf
devices = [
    [device.device_type, tf.config.experimental.get_device_details(device)]
    for device in tf.config.list_physical_devices()
]
build = tf.sysconfig.get_build_info()
print(json.dumps([devices, dict(build)], default=str))
"""
_DRIVER = (
    Path("/proc/driver/nvidia/version"),
    Path("/dev/nvidiactl"),
    Path("/dev/dxg"),  # Windows' GPU in WSL
)


def check_devices(
    time_limit_s: float = _TIME_LIMIT_S, driver: tuple[Path, ...] = _DRIVER
) -> Check:
    """Returns the devices that TensorFlow lists, and the strategy ``auto`` here.

    Args:
      time_limit_s: after which the process is killed.
      driver: files that exist if an NVIDIA driver is installed.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            cwd=own_root(),  # `-c` imports from there
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limit_s,
        )
    except subprocess.TimeoutExpired:
        found = f"TensorFlow did not answer within {time_limit_s:g} s"
        return Check("devices", "problem", found, _hint())
    if done.returncode:
        return Check("devices", "problem", _crash(done), _hint())
    devices, build = json.loads(done.stdout.splitlines()[-1])
    found = _listed(devices)
    installed = [path for path in driver if path.exists()]
    if installed and not any(kind == "GPU" for kind, _ in devices):
        found += f"; an NVIDIA driver is there ({installed[0]}), but no GPU is visible"
        return Check("devices", "warning", found, _gpu_hint(build))
    gpus = sum(kind == "GPU" for kind, _ in devices)
    try:
        choice = choose("auto", gpus=gpus, tpu=find_tpu(), cluster=read_cluster())
    except UsageError as error:
        hint = "correct or unset TF_CONFIG"
        return Check("devices", "warning", f"{found}; {error.what}", hint)
    strategy = f"train.strategy auto is {choice.kind}, {choice.why}"
    return Check("devices", "ok", f"{found}; {strategy}")


def _listed(devices: list[tuple[str, dict[str, Any]]]) -> str:
    names = Counter(
        (kind, str(details.get("device_name", ""))) for kind, details in devices
    )
    return ", ".join(
        f"{count} {kind}{f' ({name})' if name else ''}"
        for (kind, name), count in names.items()
    )


def _crash(done: subprocess.CompletedProcess[str]) -> str:
    last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
    said = f": {last[0].strip()[:200]}" if last else ""
    return f"the import of TensorFlow {describe_end(done.returncode)}{said}"


def _hint() -> str:
    return f'{sys.executable} -c "import tensorflow" shows the whole error'


def _gpu_hint(build: dict[str, str]) -> str:
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={hidden} hides it: unset it"
    if not build.get("cuda_version"):
        return "this TensorFlow is built without CUDA"
    return (
        f"TensorFlow needs CUDA {build['cuda_version']} and cuDNN "
        f"{build.get('cudnn_version')}; see https://www.tensorflow.org/install/pip"
    )
