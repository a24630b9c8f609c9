"""Folders for the checkpoints of trainings: ``<root>/<node id>/<cache key>``.

A training is identified by its node's cache key, not by its run, so that a later run
with the same config, data, schema and code resumes it. Its folder is deleted when the
node has succeeded. Of unfinished trainings each node keeps the newest few.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

# Unfinished trainings whose checkpoints are kept, per node.
MAX_UNFINISHED = 3
MAX_AGE_S = 30 * 24 * 3600.0


def begin_training(node_dir: Path, key: str, *, from_scratch: bool = False) -> Path:
    """Returns the folder of a training, and deletes the oldest of too many others.

    One process at a time may use the folders of a node. ``from_scratch`` deletes
    earlier checkpoints of this training too.
    """
    if from_scratch:
        shutil.rmtree(node_dir / key, ignore_errors=True)
    others = [path for path in folders(node_dir) if path.name != key]
    # A checkpoint is renamed into its folder, which sets the folder's time.
    others.sort(key=lambda path: path.stat().st_mtime)
    for path in others[: 1 - MAX_UNFINISHED]:
        shutil.rmtree(path, ignore_errors=True)
    return node_dir / key


def expired_checkpoints(root: Path) -> list[Path]:
    """Returns the folders of trainings that are too old, of all nodes."""
    oldest_s = time.time() - MAX_AGE_S
    found = [path for node in folders(root) for path in folders(node)]
    return [path for path in found if path.stat().st_mtime < oldest_s]


def folders(parent: Path) -> list[Path]:
    """Returns the subfolders of a folder, sorted; links are left out."""
    if parent.is_symlink() or not parent.is_dir():
        return []
    return sorted(
        path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()
    )
