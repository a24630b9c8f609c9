"""``sluice doctor``: packages and devices of this machine, such as for a bug report."""

from __future__ import annotations

import platform
import re
from collections import Counter
from functools import partial
from pathlib import Path

from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from runners.cli.echo import echo
from runners.cli.options import Result, verb
from sluice.compat import hidden_native_logs
from sluice.errors import bounded
from sluice.project import own_root
from sluice.version import __version__
from sluice.workspace import installed_version

_PIN = re.compile(r"^([\w.-]+)(?:\[.*?\])?==([^\s;\\]+)", re.MULTILINE)
# Exists if an NVIDIA driver is installed.
_DRIVER = Path("/proc/driver/nvidia/version")


@verb()
def command() -> Result:
    """Show the versions and devices of this machine, for a bug report.

    Packages are compared with the lock. The network is not used.
    """
    versions = {"sluice": __version__, "python": platform.python_version()}
    tfx = versions["tfx"] = str(installed_version("tfx"))
    different = differing_packages(own_root(), tfx)
    devices, strategy = find_devices()
    lines = [f"{name} {version}" for name, version in versions.items()]
    lines += [f"not as locked: {x}" for x in bounded(different)]
    lines += [f"devices: {devices}", f"train.strategy auto: {strategy}"]
    facts = {"versions": versions, "packages": different, "devices": devices}
    return Result({**facts, "strategy": strategy}, partial(echo, *lines))


def differing_packages(root: Path, tfx: str) -> list[str]:
    """Returns the packages that are not as the lock for this TFX has them."""
    lock = root / "requirements" / f"tfx-{'.'.join(tfx.split('.')[:2])}.txt"
    pins = _PIN.findall(lock.read_text("utf-8")) if lock.exists() else []
    return [
        f"{name} is {installed or 'not installed'}, locked is {locked}"
        for name, locked in pins
        if (installed := installed_version(name)) != locked
    ]


def find_devices() -> tuple[str, str]:
    """Returns what TensorFlow lists, and what the strategy ``auto`` is here."""
    with hidden_native_logs():
        import tensorflow as tf

        devices = tf.config.list_physical_devices()
    kinds = Counter(device.device_type for device in devices)
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    if not kinds["GPU"] and _DRIVER.exists():
        listed += "; an NVIDIA driver is there, but no GPU is visible"
    tpu, cluster = find_tpu(), read_cluster()
    found = choose("auto", gpus=kinds["GPU"], tpu=tpu, cluster=cluster)
    return listed, ", ".join(found)
