"""Atomic writes and locks, with real processes and a full disk."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import time
from pathlib import Path

import pytest

from sluice.storage import atomic

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_files_have_the_mode_of_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        atomic.write_text(tmp_path / "a", "x")
        with atomic.lock(tmp_path / "lock"):
            pass
    finally:
        os.umask(before)
    for name in ("a", "lock"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_file_never_gets_a_wider_mode_than_the_one_that_it_replaces(tmp_path):
    path = tmp_path / "a"
    path.touch(0o600)
    atomic.write_text(path, "x")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.fault
def test_a_full_disk_keeps_the_old_file(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        path = tmp_path / "a"
        atomic.write_text(path, "old")
        with pytest.raises(OSError, match="No space left"):
            atomic.write_bytes(path, bytes(1 << 20))
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["a"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def _hold(path: str, ready: str) -> None:
    with atomic.lock(path):
        Path(ready).touch()
        time.sleep(60)


def test_a_lock_is_exclusive_and_dies_with_its_owner(tmp_path):
    path, ready = tmp_path / "lock", tmp_path / "ready"
    owner = multiprocessing.get_context("fork").Process(
        target=_hold, args=(str(path), str(ready))
    )
    owner.start()
    while not ready.exists():
        time.sleep(0.01)
    with pytest.raises(BlockingIOError), atomic.lock(path, wait=False):
        pass
    assert atomic.is_locked(path)
    owner.kill()
    owner.join()
    assert not atomic.is_locked(path)
    with atomic.lock(path, wait=False):
        pass
