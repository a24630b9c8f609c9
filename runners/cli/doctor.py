"""``sluice doctor``: checks this machine, its packages and devices."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from sluice.compat import hidden_native_logs
from sluice.errors import ExitCode, bounded
from sluice.project import own_root
from sluice.workspace import installed_version

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@verb()
def command() -> Result:
    """Check this machine: packages and devices.

    The exit code is 2 if there is a problem, and 0 if there are only warnings. The
    network is not used.
    """
    console = make_console(to_stderr=True)
    with console.status("checking; importing TensorFlow takes up to a minute"):
        checks = [check_packages(own_root()), check_devices()]
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


# Exists if an NVIDIA driver is installed.
_DRIVER = Path("/proc/driver/nvidia/version")


def check_devices() -> Check:
    """Returns the devices that TensorFlow lists, and the strategy ``auto`` here."""
    try:
        with hidden_native_logs():
            import tensorflow as tf

            devices = tf.config.list_physical_devices()
    except Exception as error:
        summary = f"TensorFlow cannot be imported: {error}"
        return Check("devices", "problem", summary, "make setup")
    kinds = Counter(
        f"{device.device_type} ({name})" if name else device.device_type
        for device in devices
        for details in [tf.config.experimental.get_device_details(device)]
        for name in [details.get("device_name")]
    )
    summary = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    gpus = sum(device.device_type == "GPU" for device in devices)
    if not gpus and _DRIVER.exists():
        summary += "; an NVIDIA driver is there, but no GPU is visible"
        hint = "CUDA_VISIBLE_DEVICES may hide it, or TensorFlow's CUDA is missing: "
        hint += "https://www.tensorflow.org/install/pip"
        return Check("devices", "warning", summary, hint)
    kind, why = choose("auto", gpus=gpus, tpu=find_tpu(), cluster=read_cluster())
    summary += f"; train.strategy auto is {kind}, {why}"
    return Check("devices", "ok", summary)
