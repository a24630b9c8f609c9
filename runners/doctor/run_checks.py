"""Runs all checks; a check that raises is reported as a failed row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from runners.doctor.check import Check
from runners.doctor.devices import check_devices
from runners.doctor.disks import (
    check_disk_space,
    check_file_locks,
    check_workspace_folder,
)
from runners.doctor.locked_packages import check_locked_packages
from runners.doctor.machine import (
    check_cloud_credentials,
    check_cores,
    check_forks,
    check_memory,
)
from runners.doctor.models import check_baselines, check_serving
from runners.doctor.versions import (
    check_beam_engine,
    check_keras_flavour,
    check_protobuf_runtime,
    check_python,
    check_tfx_versions,
)
from sluice.project import own_root


def run_checks(workspace: Path) -> Iterator[Check]:
    """Yields each result as soon as it is known; that of the devices takes seconds.

    Args:
      workspace: a pipeline's workspace, or the folder of all workspaces.
    """
    for name, check in _checks(workspace).items():
        try:
            yield check()
        except Exception as error:
            # The check may fail because of the very problem it looks for.
            reason = " ".join(str(error).split())
            found = f"the check itself failed: {type(error).__name__}: {reason}"
            yield Check(name, "problem", found)


def _checks(workspace: Path) -> dict[str, Callable[[], Check]]:
    return {
        "python": check_python,
        "lock": partial(check_locked_packages, own_root()),
        "versions": check_tfx_versions,
        "beam": check_beam_engine,
        "protobuf": check_protobuf_runtime,
        "keras": check_keras_flavour,
        "workspace": partial(check_workspace_folder, workspace),
        "file_locks": partial(check_file_locks, workspace),
        "disk_workspace": partial(check_disk_space, "disk_workspace", workspace),
        "baselines": partial(check_baselines, workspace),
        "serving": partial(check_serving, workspace),
        "disk_temp": lambda: check_disk_space("disk_temp", Path(tempfile.gettempdir())),
        "memory": check_memory,
        "cores": check_cores,
        "forks": check_forks,
        "cloud": check_cloud_credentials,
        "devices": check_devices,
    }
