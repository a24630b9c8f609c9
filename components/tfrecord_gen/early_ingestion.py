"""Ingests in a process of its own while the server of the runner imports TFX.

The process needs no TFX, and ingests into a folder. The executor of ``TFRecordGen``,
which TFX calls later, waits for its end and moves what is there to its outputs. Without
a result it ingests by itself, and reports what is wrong.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import TypeAdapter

from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.ingestion_report import Report
from components.tfrecord_gen.input_files import Window
from components.tfrecord_gen.settings import Ingestion
from sluice.machine_resources import usable_cores
from sluice.node_environment import node_environment
from sluice.process_tree import die_with, kill_group

_REQUEST_FILE, _QUARANTINE = "request.json", "quarantine"
# Locked while the process lives; not empty when it has ingested everything.
_LOCK = "lock"
_REQUEST = TypeAdapter(tuple[Ingestion, Window])


@contextmanager
def ingesting(folder: Path, settings: Ingestion, window: Window) -> Iterator[None]:
    """Ingests in a process with low priority; at the end of the block all is deleted.

    Args:
      folder: in the file system of the artifacts; deleted first, as a killed run may
        have left it.
      settings: the checks of the records.
      window: the files.
    """
    process = None
    with suppress(OSError):  # The node's own ingestion says what is wrong.
        shutil.rmtree(folder, ignore_errors=True)
        process = _start(folder, settings, window)
    try:
        yield
    finally:
        if process:
            kill_group(process.pid)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    folder: Path, settings: Ingestion, window: Window
) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / _REQUEST_FILE).write_bytes(_REQUEST.dump_json((settings, window)))
    with open(folder / _LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.Popen(
            [sys.executable, "-m", __name__, folder, str(lock.fileno())],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[lock.fileno()],
            start_new_session=True,
        )


def take_ingested(
    settings: Ingestion,
    window: Window,
    split_dirs: Mapping[str, str],
    quarantine_dir: str,
) -> Report | None:
    """Waits for the process of the run, and moves what it has ingested.

    Returns:
      The report; None if there is none, or it is of other settings or files.
    """
    folder = Path(node_environment().ingested or os.devnull)
    if not (folder / _LOCK).exists() or _request(folder) != (settings, window):
        return None
    with open(folder / _LOCK, "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not lock.read():
            return None
        lock.truncate(0)  # Another node may ingest the same.
        for name, target in {**split_dirs, _QUARANTINE: quarantine_dir}.items():
            os.replace(folder / name, target)
    return Report.load(quarantine_dir)


def _request(folder: Path) -> tuple[Ingestion, Window]:
    return _REQUEST.validate_json((folder / _REQUEST_FILE).read_bytes())


def _ingest(folder: Path, lock: int) -> None:
    die_with(os.getppid())
    os.nice(10)
    settings, window = _request(folder)
    splits = {name: str(folder / name) for name in settings.split_names}
    quarantine = str(folder / _QUARANTINE)
    ingest(settings, window, splits, quarantine, usable_cores())
    os.write(lock, b"done")


if __name__ == "__main__":
    _ingest(Path(sys.argv[1]), int(sys.argv[2]))
