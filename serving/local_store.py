"""Model store in a directory: a version appears by one rename.

The record is written before the rename that publishes the version; a number with a
record is never used again. ``.lock`` is held while a version is published, and copies
that a killed publisher has left (``.staging-<random>/``) are deleted by the next one.
It needs a POSIX file system (``flock``, atomic rename).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving.model_store import ModelStore, ModelVersion, Publication, SavedModel
from serving.store_owner import Owner, check_owner, claim
from sluice.errors import UsageError
from sluice.storage import atomic, digest


class LocalModelStore(ModelStore):
    """Versions in a directory; concurrent publishers wait for each other."""

    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        self.root = Path(root)

    def prepare(self, owner: Owner | None = None) -> None:
        with (
            self._os_errors_as("the serving directory cannot be used", UsageError),
            self._held(owner) as staging,
        ):
            self._next_number()
            staging.mkdir()
            staging.rmdir()

    def _publish(
        self, source: SavedModel, facts: dict[str, Any], owner: Owner | None
    ) -> Publication:
        with self._held(owner) as staging:
            claim(self._owner, owner, facts)
            if served := self._already_served(source):
                return served
            try:
                _copy(source, staging)
                version = self._next_number()
                target = self.root / str(version)
                atomic.write_json(self._record_of(version), source.record(facts))
                # Rename last: TensorFlow Serving ignores names that are not numbers.
                os.rename(staging, target)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
            atomic.sync_directory(self.root)
        return Publication(version, "pushed", str(target), source.digest)

    @contextlib.contextmanager
    def _held(self, owner: Owner | None) -> Iterator[Path]:
        """Holds the store's lock; yields a path for a copy."""
        records = Path(self._records)
        for directory in (*reversed(records.parents), records):
            if not directory.exists():
                directory.mkdir(exist_ok=True)
                directory.chmod(0o755)
        with atomic.lock(self.root / ".lock"):
            check_owner(self._owner, owner)
            for left in self.root.glob(".staging-*"):
                shutil.rmtree(left)
            yield self.root / f".staging-{secrets.token_hex(8)}"

    def _load(self, number: int) -> ModelVersion:
        unrecorded = ModelVersion(number, f"{self.uri}/{number}", None, None, {})
        return super()._load(number) or unrecorded


def _copy(source: SavedModel, target: Path) -> None:
    """Copies a model, readable by all users, and flushes it to the disk."""
    for name in source.names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.root / name, target / name)
    for path in (target, *target.rglob("*")):
        # A server may run as another user, whatever the umask.
        path.chmod(0o755 if path.is_dir() else 0o644)
        atomic.sync_directory(path)
    source.check_copied(digest.of_tree(target))
