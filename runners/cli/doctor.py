"""``sluice doctor``: checks this machine, its packages and devices."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from rich.filesize import decimal

from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from sluice.errors import ExitCode, bounded
from sluice.machine_resources import free_memory_bytes, total_memory_bytes
from sluice.process_tree import describe_end
from sluice.project import current_project, own_root
from sluice.workspace import installed_version, locate

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@verb()
def command() -> Result:
    """Check this machine: packages, disks, memory, devices.

    The exit code is 2 if there is a problem, and 0 if there are only warnings. The
    network is not used.
    """
    workspaces = locate(current_project(Path.cwd()), "").root
    console = make_console(to_stderr=True)
    with console.status("checking; importing TensorFlow takes up to a minute"):
        checks = list(run_checks(workspaces))
    ok = not any(check.state == "problem" for check in checks)
    facts = {"ok": ok, "checks": [asdict(check) for check in checks]}
    code = ExitCode.DONE if ok else ExitCode.USAGE
    return Result(facts, partial(_print_checks, checks), code)


def _print_checks(checks: Sequence[Check]) -> None:
    table = make_table("state", "check", "found", folded=("found",), show_header=False)
    for check in checks:
        state = plain(check.state, _STYLES[check.state])
        table.add_row(state, check.check.replace("_", " "), check.found)
        if check.hint:
            table.add_row("", "", plain(f"try: {check.hint}", "dim"))
    console = make_console()
    console.print(table)
    counts = Counter(check.state for check in checks)
    say(console)
    say(console, ", ".join(f"{counts[state]} {state}" for state in counts), "bold")


CheckState = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
      check: the name of the check; stable, for scripts.
      state: ``problem`` if runs will fail, ``warning`` if they may fail or are slow.
      found: the result, for people.
      hint: what to do; None if nothing has to be done.
    """

    check: str
    state: CheckState
    found: str
    hint: str | None = None


def run_checks(workspaces: Path) -> Iterator[Check]:
    """Yields each result as soon as it is known; that of the devices takes seconds.

    Args:
      workspaces: the folder of all workspaces.
    """
    temporary = Path(tempfile.gettempdir())
    checks: dict[str, Callable[[], Check]] = {
        "packages": partial(check_packages, own_root()),
        "disk_workspace": partial(check_disk, "disk_workspace", workspaces),
        "disk_temp": partial(check_disk, "disk_temp", temporary),
        "memory": check_memory,
        "devices": check_devices,
    }
    for name, check in checks.items():
        try:
            yield check()
        except Exception as error:
            # The check may fail because of the very problem it looks for.
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            yield Check(name, "problem", f"the check itself failed: {reason}")


_PIN = re.compile(r"^([\w.-]+)(?:\[.*?\])?==([^\s;\\]+)", re.MULTILINE)


def check_packages(root: Path) -> Check:
    """Compares the installed packages with the lock for the installed TFX."""
    tfx = installed_version("tfx")
    if tfx is None:
        return Check("packages", "problem", "tfx is not installed", "make setup")
    lock = root / "requirements" / f"tfx-{'.'.join(tfx.split('.')[:2])}.txt"
    pins = _PIN.findall(lock.read_text("utf-8"))
    differences = [
        f"{name} is {installed or 'not installed'}, locked is {locked}"
        for name, locked in pins
        if (installed := installed_version(name)) != locked
    ]
    found = f"Python {platform.python_version()}, {lock.relative_to(root)}"
    if not differences:
        return Check("packages", "ok", f"{found}: all {len(pins)} as locked")
    found += f": {len(differences)} of {len(pins)} differ: "
    found += "; ".join(bounded(differences))
    return Check("packages", "warning", found, "make setup")


# A run of the sample data leaves 4 MB, Beam's temporary files of real data some GB.
_SCARCE_BYTES, _TOO_LITTLE_BYTES = 2 * 10**9, 10**8


def check_disk(name: str, folder: Path) -> Check:
    """Checks that a folder, which need not exist, can be written and has space."""
    place = next(known for known in (folder, *folder.parents) if known.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        return Check(name, "problem", f"{place} is not a folder that can be written")
    disk = shutil.disk_usage(place)
    found = f"{decimal(disk.free)} free of {decimal(disk.total)}, {folder}"
    return Check(name, _state(disk.free, _SCARCE_BYTES, _TOO_LITTLE_BYTES), found)


def _state(available: int, scarce: int, too_little: int) -> CheckState:
    if available >= scarce:
        return "ok"
    return "warning" if available >= too_little else "problem"


# A process that has imported TFX holds about 0.7 GB before it does anything.
_SCARCE_MEMORY_BYTES, _MIN_MEMORY_BYTES = 2 * 10**9, 10**9


def check_memory() -> Check:
    """Returns the available memory, within the container's limit."""
    free = free_memory_bytes()
    found = f"{decimal(free)} available of {decimal(total_memory_bytes())}"
    state = _state(free, _SCARCE_MEMORY_BYTES, _MIN_MEMORY_BYTES)
    hint = None if state == "ok" else "sluice run --workers 1"
    return Check("memory", state, found, hint)


# In a process of its own: a broken installation may crash.
_PROBE = """
import json
from sluice.compat import prepare_environment
prepare_environment()
import tensorflow as tf
devices = [
    [device.device_type, tf.config.experimental.get_device_details(device)]
    for device in tf.config.list_physical_devices()
]
print(json.dumps(devices, default=str))
"""
_TIME_LIMIT_S = 180.0
# Exists if an NVIDIA driver is installed.
_DRIVER = Path("/proc/driver/nvidia/version")


def check_devices() -> Check:
    """Returns the devices that TensorFlow lists, and the strategy ``auto`` here."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE],
        cwd=own_root(),  # `-c` imports from there
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIME_LIMIT_S,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        summary = f"the import of TensorFlow {describe_end(done.returncode)}"
        hint = f'{sys.executable} -c "import tensorflow" shows the whole error'
        return Check("devices", "problem", ": ".join([summary, *last]), hint)
    devices = json.loads(done.stdout.splitlines()[-1])
    kinds = Counter(
        f"{kind} ({details['device_name']})" if details.get("device_name") else kind
        for kind, details in devices
    )
    summary = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    gpus = sum(kind == "GPU" for kind, _ in devices)
    if not gpus and _DRIVER.exists():
        summary += "; an NVIDIA driver is there, but no GPU is visible"
        hint = "CUDA_VISIBLE_DEVICES may hide it, or TensorFlow's CUDA is missing: "
        hint += "https://www.tensorflow.org/install/pip"
        return Check("devices", "warning", summary, hint)
    kind, why = choose("auto", gpus=gpus, tpu=find_tpu(), cluster=read_cluster())
    summary += f"; train.strategy auto is {kind}, {why}"
    return Check("devices", "ok", summary)
