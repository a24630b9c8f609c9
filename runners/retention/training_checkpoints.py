"""Folders for the checkpoints of trainings: ``<root>/<node id>/<cache key>``.

A training is identified by its node's cache key, not by its run, so that a later run
with the same config, data, schema and code resumes it. Its folder is deleted when the
node has succeeded. Of unfinished trainings each node keeps the newest few.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Unfinished trainings whose checkpoints are kept, per node.
MAX_UNFINISHED = 3
MAX_AGE_S = 30 * 24 * 3600.0


@dataclass(frozen=True)
class NodeCheckpoints:
    """The checkpoint folders of one node; one process at a time may use them."""

    directory: Path

    def begin(self, key: str, *, from_scratch: bool = False) -> Path:
        """Returns the folder of a training, and deletes expired ones of others.

        ``from_scratch`` deletes earlier checkpoints of this training too.
        """
        if from_scratch:
            self.delete(key)
        for path in self.expired(beside=key):
            shutil.rmtree(path, ignore_errors=True)
        return self.directory / key

    def delete(self, key: str) -> None:
        """Deletes the checkpoints of a training, if there are any."""
        shutil.rmtree(self.directory / key, ignore_errors=True)
        with suppress(OSError):
            self.directory.rmdir()

    def expired(self, *, beside: str | None = None) -> list[Path]:
        """Returns the folders of trainings that are too old or too many.

        Args:
          beside: the key of a training that begins; it counts as the newest.
        """
        # A checkpoint is renamed into its folder, which sets the folder's time.
        ages = {path: path.stat().st_mtime for path in folders(self.directory)}
        if beside is not None:
            ages.pop(self.directory / beside, None)
        newest = sorted(ages, key=lambda path: -ages[path])
        kept = newest[: MAX_UNFINISHED - (beside is not None)]
        oldest_s = time.time() - MAX_AGE_S
        return [path for path in newest if path not in kept or ages[path] < oldest_s]


def folders(parent: Path) -> list[Path]:
    """Returns the subfolders of a folder, sorted; links are left out."""
    if parent.is_symlink() or not parent.is_dir():
        return []
    return sorted(
        path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()
    )


def expired_checkpoints(root: Path) -> list[Path]:
    """Returns the folders of trainings that are too old or too many, of all nodes."""
    return [path for node in folders(root) for path in NodeCheckpoints(node).expired()]
