"""Sends everything that a node prints to a file, native code's output included."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def node_log(path: Path | None) -> Iterator[None]:
    """Redirects the file descriptors 1 and 2 to ``path`` (appending) for a while.

    TensorFlow and Beam write to the descriptors from C++, so replacing ``sys.stderr``
    would miss them. Without a path nothing is redirected.
    """
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _flush()
    saved = os.dup(1), os.dup(2)
    with open(path, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        _flush()
        for descriptor, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, descriptor)
            os.close(copy)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
