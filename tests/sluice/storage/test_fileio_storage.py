"""Storage through TFX's fileio, on TensorFlow's in-memory file system."""

from __future__ import annotations

import errno
from uuid import uuid4

import pytest

from sluice.storage.storage import storage_for

pytestmark = pytest.mark.tf


def test_files_are_written_listed_read_and_deleted() -> None:
    base = f"ram://{uuid4()}"
    storage = storage_for(base)
    storage.make_folder(f"{base}/folder")
    storage.write_atomically(f"{base}/folder/b", b"second")
    with storage.open(f"{base}/folder/part", "wb") as file:
        file.write(b"first")
    storage.rename(f"{base}/folder/part", f"{base}/folder/a")
    entries = storage.list(f"{base}/folder")
    assert [(entry.name, entry.size_bytes) for entry in entries] == [("a", 5), ("b", 6)]
    assert storage.stat(f"{base}/folder").kind == "folder"
    below = storage.list(base, recursive=True)
    assert [entry.name for entry in below] == ["folder/a", "folder/b"]
    assert storage.read(entries[0].uri) == b"first"
    storage.delete(entries[0].uri)
    assert storage.names(f"{base}/folder") == ["b"]
    storage.delete_tree(f"{base}/folder")
    assert not storage.is_file(f"{base}/folder/b")
    assert not storage.list(f"{base}/gone")


def test_what_is_missing_is_an_os_error() -> None:
    base = f"ram://{uuid4()}"
    storage = storage_for(base)
    for call in (storage.stat, storage.read, storage.delete):
        with pytest.raises(FileNotFoundError) as caught:
            call(f"{base}/gone")
        assert caught.value.filename == f"{base}/gone"


def test_preconditions_are_refused_and_not_ignored() -> None:
    base = f"ram://{uuid4()}"
    storage = storage_for(base)
    with pytest.raises(OSError, match="cannot write a file only where") as caught:
        storage.write_if_absent(f"{base}/file", b"")
    assert caught.value.errno == errno.EOPNOTSUPP
    with pytest.raises(OSError, match="of one generation"):
        storage.write_atomically(f"{base}/file", b"", if_generation="1")
