"""Runs of a pipeline on small disks that are full, one after another.

The disks are tmpfs in a mount namespace of this process, and gone at its end.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
from pathlib import Path

import forked_command

from runners.local.processes.forked_process import ForkedProcess

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000


def main(
    project: str,
    workspace: str,
    results: str,
    environment: dict[str, str],
    user_namespace: bool,
) -> None:
    """Writes the output and exit code of each command to ``results``.

    Args:
      project: its root, the working directory of the commands.
      workspace: of the pipeline ``digits``.
      results: a folder.
      environment: variables of the commands.
      user_namespace: whether mounting needs a user namespace.
    """
    _enter_namespace(user_namespace)
    root, out = Path(workspace), Path(results)
    artifacts, disk, metadata = root / "artifacts", out / "disk", root / "metadata.db"

    def sluice(name: str, *arguments: str) -> None:
        texts = str(out / f"{name}.out"), str(out / f"{name}.err")
        command = list(arguments)
        process = ForkedProcess(
            lambda: forked_command.main(command, project, *texts, environment)
        )
        (out / f"{name}.code").write_text(str(process.wait()))

    for folder in (artifacts, disk):
        folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", "size=1m", "none", str(artifacts))
    _mount("-t", "tmpfs", "-o", "size=64k", "none", str(disk))
    for path in (disk / "metadata.db", metadata):
        path.touch()
    _mount("--bind", str(disk / "metadata.db"), str(metadata))
    sluice("metadata", "run", "digits", "--to", "TFRecordGen")

    _mount("-o", "remount,size=4m", str(disk))
    ballast = _fill(artifacts)
    # Three pages: room for what other nodes write, not for the records.
    os.truncate(ballast, ballast.stat().st_size - 3 * 4096)
    sluice("outputs", "resume", "digits")
    left = [str(path) for path in artifacts.rglob("data_*")]
    (out / "left").write_text("\n".join(left))

    ballast.unlink()
    sluice("room", "resume", "digits", "--json")
    shutil.copytree(artifacts, out / "artifacts")
    shutil.copy(metadata, out)

    _mount("-t", "tmpfs", "-o", "size=1m", "none", str(root))
    ballast = _fill(root)
    sluice("new", "run", "digits")
    ballast.unlink()
    for name in ("inputs", "state", "runs"):
        (root / name).mkdir(exist_ok=True)
    (root / "workspace.json").write_text('{"format": 1}\n')
    ballast = _fill(root)
    sluice("used", "run", "digits")
    # Room for the record of a run, but not for its metadata.
    os.truncate(ballast, ballast.stat().st_size - 400 * 1024)
    sluice("little", "run", "digits")


def _enter_namespace(user_namespace: bool) -> None:
    """Does what ``unshare -m`` or ``unshare -Urm`` does."""
    ids = os.getuid(), os.getgid()
    flags = _CLONE_NEWNS | (_CLONE_NEWUSER if user_namespace else 0)
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if user_namespace:
        Path("/proc/self/setgroups").write_text("deny")
        for name, own in zip(("uid_map", "gid_map"), ids, strict=True):
            Path("/proc/self", name).write_text(f"0 {own} 1")
    # Mounts stay in this namespace.
    _mount("--make-rprivate", "/")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _fill(folder: Path) -> Path:
    """Writes a file that leaves no room on its disk, and returns it."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    return ballast
