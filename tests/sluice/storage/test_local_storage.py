"""Local storage: atomic and conditional writes, listings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice.storage import atomic
from sluice.storage.local_storage import LocalStorage
from sluice.storage.storage import storage_for
from sluice.storage.storage_errors import PreconditionFailedError

pytestmark = pytest.mark.unit

STORAGE = LocalStorage()


def generation(path: Path) -> str:
    return STORAGE.stat(str(path)).generation


def test_a_listing_has_size_generation_and_time(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_bytes(b"1")
    (tmp_path / "file").write_bytes(b"123")
    os.utime(tmp_path / "file", (50, 50))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    entries = STORAGE.list(str(tmp_path))
    assert [(entry.name, entry.kind) for entry in entries] == [
        ("file", "file"),
        ("folder", "folder"),
        ("nowhere", "file"),
        ("pipe", "other"),
    ]
    file = entries[0]
    assert (file.size_bytes, file.modified_s) == (3, 50)
    assert file.changed_s > file.modified_s
    assert file == STORAGE.stat(file.uri)
    below = STORAGE.list(str(tmp_path), recursive=True)
    assert [entry.name for entry in below] == ["file", "folder/inner", "nowhere"]
    some = STORAGE.list(str(tmp_path), matching=lambda name: name == "file")
    assert [entry.name for entry in some] == ["file"]


def test_a_missing_folder_has_no_entries(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("gone", "file"):
        assert not STORAGE.list(str(tmp_path / name))
        assert not STORAGE.list(str(tmp_path / name), recursive=True)
        assert not STORAGE.names(str(tmp_path / name))
    assert not STORAGE.exists(str(tmp_path / "file" / "below"))


def test_links_are_deleted_and_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(other)
    assert not STORAGE.list(str(tree), recursive=True)
    STORAGE.delete_tree(str(tree))
    (tmp_path / "link").symlink_to(other)
    STORAGE.delete_tree(str(tmp_path / "link"))
    STORAGE.delete_tree(str(tmp_path / "gone"))
    assert list(tmp_path.rglob("*")) == [other, other / "kept"]


def test_a_file_of_another_generation_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = generation(path)
    STORAGE.write_atomically(str(path), b"two", if_generation=first)
    with pytest.raises(PreconditionFailedError) as caught:
        STORAGE.write_atomically(str(path), b"three", if_generation=first)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"two"
    path.unlink()
    with pytest.raises(PreconditionFailedError):
        STORAGE.write_atomically(str(path), b"three", if_generation=first)
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_generation_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    storage = storage_for(path)
    chosen = storage.stat(str(path)).generation
    with storage.open(str(path), "rb", generation=chosen) as file:
        assert file.read() == b"old"
    atomic.write_text(path, "new")
    with pytest.raises(PreconditionFailedError):
        storage.open(str(path), "rb", generation=chosen)


def test_a_copy_replaces_its_target(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    storage_for(tmp_path).copy(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [(tmp_path / name).read_text() for name in "ab"] == ["a", "a"]


def test_of_many_writers_of_one_generation_one_wins(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    together = threading.Barrier(8)
    seen = generation

    def write(number: int) -> bool:
        before = seen(Path(path))
        together.wait()
        try:
            STORAGE.write_atomically(path, b"%d" % number, if_generation=before)
        except PreconditionFailedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            STORAGE.write_atomically(path, b"old")
            won = list(pool.map(write, range(8)))
            assert won.count(True) == 1
            assert STORAGE.read(path) == b"%d" % won.index(True)
    assert STORAGE.names(str(tmp_path)) == ["file"]


def test_of_many_writers_of_a_new_file_one_wins(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def create(turn: int, number: int) -> bool:
        together.wait()
        path = str(tmp_path / str(turn))
        return STORAGE.write_if_absent(path, b"%d" % number)

    with ThreadPoolExecutor(8) as pool:
        for turn in range(20):
            won = list(pool.map(create, [turn] * 8, range(8)))
            assert won.count(True) == 1
            path = tmp_path / str(turn)
            assert path.read_bytes() == b"%d" % won.index(True)
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.parametrize("fault", ["kill", "full"])
@pytest.mark.parametrize("call", ["write_bytes", "create"])
def test_a_writer_that_is_killed_or_short_of_space_leaves_no_part(
    tmp_path: Path, fault: str, call: str
) -> None:
    path = tmp_path / "file"
    if call == "write_bytes":
        path.write_bytes(b"old")
    script = """
import os, resource, signal, sys
from sluice.storage import atomic
path, fault, call = sys.argv[1:]
if fault == "kill":
    os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
getattr(atomic, call)(path, b"x" * 10_000)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), fault, call], capture_output=True
    )
    if fault == "kill":
        assert done.returncode == -signal.SIGKILL
    else:
        assert b"File too large" in done.stderr
        assert STORAGE.names(str(tmp_path)) == (
            ["file"] if call == "write_bytes" else []
        )
    if call == "write_bytes":
        assert path.read_bytes() == b"old"
        return
    assert not path.exists()
    assert atomic.create(path, b"new")


def test_local_paths_need_no_client() -> None:
    assert storage_for("/data") is storage_for(Path("relative"))
    script = (
        "import sys\n"
        "from sluice.storage.storage import storage_for\n"
        "storage_for('/tmp').list('/tmp')\n"
        "loaded = {'google.cloud.storage', 'requests', 'tfx', 'tensorflow'}\n"
        "assert not loaded & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
