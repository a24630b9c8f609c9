"""Local copies of remote artifacts, for libraries that need local files; and back."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from sluice.storage.digest import files_below
from sluice.storage.storage import is_remote, storage_for

_PREFIX = "sluice-artifact-"


@contextmanager
def local_copy(uri: str, patterns: Collection[str] = ("*",)) -> Iterator[Path]:
    """Yields a local folder or file as it is; of a remote one, a temporary copy.

    Of a folder the files are copied whose names match one of the patterns.

    Raises:
      OSError: it does not exist or cannot be read, or a name leads outside the copy.
    """
    if not is_remote(uri):
        yield Path(uri)
        return
    storage = storage_for(uri)
    entries = storage.list(uri, recursive=True)
    is_file = not entries
    if is_file:
        entries = [storage.stat(uri)]
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        for entry in entries:
            name = os.path.basename(entry.name)
            if any(fnmatch(name, pattern) for pattern in patterns):
                path = Path(folder, entry.name)
                if ".." in path.parts:
                    raise OSError(errno.EINVAL, "a name with '..'", entry.uri)
                path.parent.mkdir(parents=True, exist_ok=True)
                with storage.open(entry.uri, "rb") as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)
        copied = os.path.join(folder, entries[0].name) if is_file else folder
        yield Path(copied)


def copy_missing(path: Path, uri: str) -> None:
    """Copies a local file or directory to an address, but for files that are there.

    Each file appears whole or not at all, so the next call completes a killed copy.

    Raises:
      OSError: a file cannot be read or written.
    """
    files = {f"{uri}/{entry.name}": entry.uri for entry in files_below(path)}
    storage = storage_for(uri)
    for target, source in (files or {uri: str(path)}).items():
        if not storage.exists(target):
            storage.make_folder(os.path.dirname(target))
            storage.write_atomically(target, Path(source).read_bytes())


@contextmanager
def local_output(uri: str) -> Iterator[Path]:
    """Yields a local folder to write files to; those of a remote one are uploaded.

    A local folder is created if need be. Nothing is uploaded if the block raises.

    Raises:
      OSError: it cannot be written.
    """
    if not is_remote(uri):
        os.makedirs(uri, exist_ok=True)
        yield Path(uri)
        return
    storage = storage_for(uri)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        yield Path(folder)
        for entry in storage_for(folder).list(folder, recursive=True):
            with (
                open(entry.uri, "rb") as source,
                storage.open(f"{uri.rstrip('/')}/{entry.name}", "wb") as target,
            ):
                shutil.copyfileobj(source, target)
