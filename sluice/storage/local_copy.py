"""Local copy of a remote artifact, for libraries that read local files only."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from sluice.errors import NodeError, SluiceError
from sluice.storage.storage import is_remote, storage_for


@contextmanager
def local_copy(uri: str, patterns: Collection[str] = ("*",)) -> Iterator[Path]:
    """Yields a local folder as it is; of a remote one, a temporary copy.

    Args:
      uri: of a folder.
      patterns: names of the files to copy.

    Raises:
      NodeError: a name in the remote folder leads outside the copy.
      SluiceError: as raised in the block, with the remote address of the file.
      OSError: the folder does not exist or cannot be read.
    """
    if not is_remote(uri):
        yield Path(uri)
        return
    storage = storage_for(uri)
    entries = storage.list(uri, recursive=True)
    if not entries:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri)
    with tempfile.TemporaryDirectory(prefix="sluice-artifact-") as folder:
        for entry in entries:
            name = os.path.basename(entry.name)
            if any(fnmatch(name, pattern) for pattern in patterns):
                path = Path(folder, entry.name)
                if ".." in path.parts:
                    raise NodeError(
                        "the name of an object leads outside its folder",
                        where=entry.uri,
                        expected="names without '..'",
                    )
                path.parent.mkdir(parents=True, exist_ok=True)
                with storage.open(entry.uri, "rb") as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)
        try:
            yield Path(folder)
        except SluiceError as error:
            if error.where:
                error.where = error.where.replace(folder, uri.rstrip("/"))
            raise
