"""Model store in a directory: a version appears by one rename.

Beside the files that ``model_store`` names it has:

    .versions/next        the next free number; it never goes back
    .lock                 held while a version is published

The record is written before the rename that publishes the version. Of other files only
those left by a killed publisher are deleted. Links are not followed
(``serving.regular_files``). It needs a POSIX file system (``flock``, atomic rename).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving.model_store import (
    ModelStore,
    ModelVersion,
    Publication,
    check_number,
    new_record,
    number_of,
    read_record,
)
from serving.regular_files import read_file, refuse_links
from serving.saved_model_tree import SavedModelTree
from serving.store_owner import Owner, check_owner, claim
from sluice.errors import UsageError
from sluice.storage import atomic

# Left by a killed publisher: its copy, and the temporary files of ``atomic``.
_STAGING = re.compile(r"\.staging-[0-9a-f]{16}")
_TEMPORARY = re.compile(r"\.(next|owner\.json|\d+\.json)\.[0-9a-f]{16}", re.ASCII)


class LocalModelStore(ModelStore):
    """Versions in a directory; concurrent publishers wait for each other."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.uri = str(root)
        self._records = self.root / ".versions"
        self._counter = self._records / "next"
        self._owner = self._records / "owner.json"
        self._lock = self.root / ".lock"

    def versions(self) -> list[ModelVersion]:
        with self._os_errors_as("the serving directory cannot be read"):
            try:
                names = os.listdir(self.root)
            except FileNotFoundError:
                return []
            found = [
                self._load(number, self.root / name)
                for name in names
                if (number := number_of(name)) is not None
                and (self.root / name).is_dir()
            ]
        return sorted(found, key=lambda version: (version.version, version.uri))

    def prepare(self, owner: Owner | None = None) -> None:
        with (
            self._os_errors_as("the serving directory cannot be used", UsageError),
            self._held(owner),
        ):
            atomic.write_text(self._counter, f"{self._next_number()}\n")
            staging = self._new_staging()
            staging.mkdir()
            staging.rmdir()

    def _publish(
        self, source: SavedModelTree, facts: dict[str, Any], owner: Owner | None
    ) -> Publication:
        with self._held(owner):
            self._next_number()
            claim(self._owner, owner, facts)
            if served := self._already_served(self.newest(), source):
                return served
            version = self._publish_locked(source, facts)
        uri = str(self.root / str(version))
        return Publication(version, "pushed", uri, source.digest)

    def _publish_locked(self, source: SavedModelTree, facts: dict[str, Any]) -> int:
        staging = self._new_staging()
        try:
            source.copy_to(staging)
            # The number is used up: a publisher killed after this leaves a gap.
            version = self._next_number()
            atomic.write_text(self._counter, f"{version + 1}\n")
            record = new_record(source, facts)
            atomic.write_json(self._records / f"{version}.json", record)
            # Rename last: TensorFlow Serving ignores names that are not numbers.
            os.rename(staging, self.root / str(version))
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        atomic.sync_directory(self.root)
        return version

    @contextlib.contextmanager
    def _held(self, owner: Owner | None) -> Iterator[None]:
        """Holds the store's lock, after checking links and owner."""
        refuse_links((self._records, self._lock, self._counter, self._owner))
        self._make_directories()
        with atomic.lock(self._lock):
            check_owner(self._owner, owner)
            self._sweep()
            yield

    def _new_staging(self) -> Path:
        return self.root / f".staging-{secrets.token_hex(8)}"

    def _make_directories(self) -> None:
        for directory in (*reversed(self.root.parents), self.root, self._records):
            if not os.path.lexists(directory):
                directory.mkdir(exist_ok=True)
                directory.chmod(0o755)

    def _sweep(self) -> None:
        """Removes files left by killed publishers; needs the lock."""
        names = os.listdir(self.root)
        for path in map(self.root.joinpath, names):
            is_staging = _STAGING.fullmatch(path.name) and path.is_dir()
            if is_staging and not path.is_symlink():
                shutil.rmtree(path)
        for path in self._records.iterdir():
            left = path.suffix == ".json" and path.stem not in names
            if path.is_symlink() or path.is_dir():
                continue
            if _TEMPORARY.fullmatch(path.name) or (left and self._record(path.stem)):
                path.unlink()

    def _next_number(self) -> int:
        """Returns the lowest unused version number.

        Raises:
          UsageError: it does not fit into an int64.
        """
        # Stray files with a number count too.
        names = os.listdir(self.root)
        taken = {n: name for name in names if (n := number_of(name)) is not None}
        highest = max(taken, default=0)
        try:
            counted = int(read_file(self._counter))
        except (FileNotFoundError, ValueError):
            counted = 1
        culprit = self._counter if counted > highest else self.root / taken[highest]
        return check_number(max(counted, highest + 1), str(culprit), "mv")

    def _load(self, number: int, path: Path) -> ModelVersion:
        record = None if path.is_symlink() else self._record(path.name)
        return record or ModelVersion(number, str(path), None, None, {})

    def _record(self, name: str) -> ModelVersion | None:
        """Returns the version of a name as recorded; None without a valid record."""
        if self._records.is_symlink():
            return None
        try:
            text = read_file(self._records / f"{name}.json")
            return read_record(text, int(name), str(self.root / name))
        except (OSError, ValueError, KeyError, TypeError):
            return None
