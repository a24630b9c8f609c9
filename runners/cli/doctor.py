"""``sluice doctor``: checks this machine and a workspace."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import click

from pipeline.config.load import load_config
from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from runners.cli.options import Result, verb
from runners.cli.rich_console import make_console, make_table, plain, say
from runners.metadata.read_metadata import read_metadata
from runners.metadata.served_models import served_models
from runners.operations.pipeline_request import workspace_of
from sluice.errors import ExitCode, bounded
from sluice.machine_resources import free_memory_bytes, total_memory_bytes
from sluice.process_tree import describe_end
from sluice.project import current_project, own_root
from sluice.workspace import Workspace, installed_version, locate

_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


@verb()
@click.argument("name", required=False)
def doctor(name: str | None) -> Result:
    """Check this machine: packages, disks, memory, devices, credentials.

    With NAME, check the workspace of that pipeline, else those of the project. The exit
    code is 2 if there is a problem, and 0 if there are only warnings. The network is
    not used.
    """
    if name is None:
        workspace = locate(current_project(Path.cwd()), "")
    else:
        workspace = workspace_of(load_config(name))
    console = make_console(to_stderr=True)
    with console.status("checking; importing TensorFlow takes up to a minute"):
        checks = list(run_checks(workspace.root))
    ok = not any(check.state == "problem" for check in checks)
    facts = {"ok": ok, "checks": [asdict(check) for check in checks]}
    code = ExitCode.DONE if ok else ExitCode.USAGE
    return Result(facts, partial(_print_checks, checks), code)


def _print_checks(checks: Sequence[Check]) -> None:
    table = make_table("state", "check", "found", folded=("found",), show_header=False)
    for check in checks:
        found = plain(check.found)
        if check.hint:
            found.append("\n").append_text(plain(f"try: {check.hint}", "dim"))
        state = plain(check.state, _STYLES[check.state])
        table.add_row(state, check.check.replace("_", " "), found)
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


def run_checks(workspace: Path) -> Iterator[Check]:
    """Yields each result as soon as it is known; that of the devices takes seconds.

    Args:
      workspace: a pipeline's workspace, or the folder of all workspaces.
    """
    temporary = partial(check_disk, "disk_temp", Path(tempfile.gettempdir()))
    checks: dict[str, Callable[[], Check]] = {
        "packages": partial(check_packages, own_root()),
        "keras": check_keras,
        "disk_workspace": partial(check_disk, "disk_workspace", workspace),
        "disk_temp": temporary,
        "serving": partial(check_serving, workspace),
        "memory": check_memory,
        "cloud": check_credentials,
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
    python = f"Python {platform.python_version()}"
    minor = ".".join(tfx.split(".")[:2])
    lock = root / "requirements" / f"tfx-{minor}.txt"
    if not lock.is_file():
        found = f"{python}, tfx {tfx}, for which there is no {lock}"
        return Check("packages", "warning", found, "make setup")
    pins = _PIN.findall(lock.read_text("utf-8"))
    differences = [
        f"{name} is {installed or 'not installed'}, locked is {locked}"
        for name, locked in pins
        if (installed := installed_version(name)) != locked
    ]
    found = f"{python}, {lock.relative_to(root)}"
    if not differences:
        return Check("packages", "ok", f"{found}: all {len(pins)} as locked")
    found += f": {len(differences)} of {len(pins)} differ: "
    found += "; ".join(bounded(differences))
    return Check("packages", "warning", found, "make setup")


def check_keras() -> Check:
    """Checks that legacy Keras is installed and not disabled by the environment."""
    legacy = installed_version("tf-keras")
    if legacy is None:
        return Check("keras", "problem", "tf-keras is not installed", "make setup")
    found = f"legacy: tf-keras {legacy}"
    asked = os.environ.get("TF_USE_LEGACY_KERAS", "1")
    if asked == "1":
        return Check("keras", "ok", found)
    found += f"; the environment says TF_USE_LEGACY_KERAS={asked}"
    hint = "unset it, so that your own scripts load models with the Keras of the runs"
    return Check("keras", "warning", found, hint)


# A run of the sample data leaves 4 MiB, Beam's temporary files of real data some GiB.
_SCARCE_BYTES = 2 * 2**30
_TOO_LITTLE_BYTES = 100 * 2**20
_TOO_FEW_FILES = 1000


def check_disk(name: str, folder: Path) -> Check:
    """Checks that a folder, which need not exist, can be written and has space."""
    folder = folder.absolute()
    place = next(known for known in (folder, *folder.parents) if known.exists())
    variable = "TMPDIR" if name == "disk_temp" else "--workspace or SLUICE_WORKSPACE"
    hint = f"delete files there, or choose another folder with {variable}"
    if not place.is_dir() or not os.access(place, os.W_OK):
        found = f"{place} is not a folder that can be written"
        return Check(name, "problem", found, hint)
    stat = os.statvfs(place)
    free = stat.f_bavail * stat.f_frsize
    found = f"{in_gib(free)} free of {in_gib(stat.f_blocks * stat.f_frsize)}, {folder}"
    # Some file systems make inodes as they need them, and report none.
    if stat.f_files and stat.f_favail < _TOO_FEW_FILES:
        found += f", room for {stat.f_favail} files"
        return Check(name, "problem", found, hint)
    state = _state(free, _SCARCE_BYTES, _TOO_LITTLE_BYTES)
    return Check(name, state, found, None if state == "ok" else hint)


def _state(available: int, scarce: int, too_little: int) -> CheckState:
    if available >= scarce:
        return "ok"
    return "warning" if available >= too_little else "problem"


def in_gib(size_bytes: int) -> str:
    """Returns ``3.1 GiB``, or ``12 MiB`` below half a GiB."""
    if size_bytes < 2**29:
        return f"{size_bytes / 2**20:.0f} MiB"
    return f"{size_bytes / 2**30:.1f} GiB"


def check_serving(folder: Path) -> Check:
    """Compares all files of each served version with what was pushed.

    ``folder`` is a pipeline's workspace, or that of all workspaces.
    """
    own = Workspace(folder).metadata_db
    served = [
        item.version
        for path in ([own] if own.exists() else sorted(folder.glob(f"*/{own.name}")))
        for item in served_models(read_metadata(path), [Workspace(path.parent).serving])
    ]
    damaged = [
        f"{version.uri} differs from what was pushed: {difference}"
        for version in served
        if (difference := version.difference())
    ]
    if not damaged:
        return Check("serving", "ok", f"{len(served) or 'no'} served versions")
    hint = "move the version out of the serving folder, and run the pipeline again"
    return Check("serving", "problem", "; ".join(bounded(damaged)), hint)


# A process that has imported TFX holds about 0.7 GiB before it does anything.
_SCARCE_MEMORY_BYTES = 2 * 2**30
_MIN_MEMORY_BYTES = 2**30


def check_memory() -> Check:
    """Returns the available memory, within the container's limit."""
    free = free_memory_bytes()
    found = f"{in_gib(free)} available of {in_gib(total_memory_bytes())}"
    state = _state(free, _SCARCE_MEMORY_BYTES, _MIN_MEMORY_BYTES)
    hint = "end other programs or raise the container's limit; sluice run --workers 1"
    return Check("memory", state, found, None if state == "ok" else hint)


def check_credentials() -> Check:
    """Looks for credentials where Google's libraries look first, without the network.

    The service account of the machine (the metadata server) is not looked for.
    """
    variable = "GOOGLE_APPLICATION_CREDENTIALS"
    if named := os.environ.get(variable):
        found = f"{variable} names {named}"
        if Path(named).is_file() and os.access(named, os.R_OK):
            return Check("cloud", "ok", found)
        hint = f"correct or unset {variable}"
        return Check("cloud", "warning", f"{found}, which cannot be read", hint)
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud"
    default = Path(folder) / "application_default_credentials.json"
    found = "no credentials; local runs need none"
    return Check("cloud", "ok", f"gcloud's, {default}" if default.is_file() else found)


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
_DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"))


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
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limit_s,
        )
    except subprocess.TimeoutExpired:
        found = f"TensorFlow did not answer within {time_limit_s:g} s"
        return Check("devices", "problem", found)
    if done.returncode:
        last = [line.strip() for line in done.stderr.splitlines() if line.strip()][-1:]
        found = f"the import of TensorFlow {describe_end(done.returncode)}"
        hint = f'{sys.executable} -c "import tensorflow" shows the whole error'
        return Check("devices", "problem", ": ".join([found, *last])[:300], hint)
    devices = json.loads(done.stdout.splitlines()[-1])
    kinds = Counter(
        f"{kind} ({details['device_name']})" if details.get("device_name") else kind
        for kind, details in devices
    )
    found = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    gpus = sum(kind == "GPU" for kind, _ in devices)
    if not gpus and any(path.exists() for path in driver):
        found += "; an NVIDIA driver is there, but no GPU is visible"
        hint = "CUDA_VISIBLE_DEVICES may hide it, or TensorFlow's CUDA is missing: "
        hint += "https://www.tensorflow.org/install/pip"
        return Check("devices", "warning", found, hint)
    kind, why = choose("auto", gpus=gpus, tpu=find_tpu(), cluster=read_cluster())
    found += f"; train.strategy auto is {kind}, {why}"
    return Check("devices", "ok", found)
