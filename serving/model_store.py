"""Versions of one model in a directory that TensorFlow Serving can watch.

A server loads the highest number that it sees, at the moment it sees it. So a version
appears whole, never changes, and a later push always has a higher number. Layout:

    7/                a SavedModel, byte for byte what was published
    .versions/7.json  digest, time and facts of version 7
    .versions/next    the next free number; it never goes back
    .staging/         the copy under way
    .lock             held while a version is published

The record lies beside the version, so that ``digest.of_tree`` of a version is the
model's own digest. It is written before the rename and found by the version's name:
the rename publishes both at once.

This module neither loads models nor deletes versions. It wants a POSIX file system
(``flock``, atomic rename), not an object store.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from serving.saved_model_tree import SavedModelTree
from sluice.errors import ServingError
from sluice.files import atomic, digest

# TensorFlow Serving reads a version's number into an int64.
_MAX_VERSION = 2**63 - 1
_FREE_SPACE = "free some space there, then push again"
_MAKE_WRITABLE = "make it a directory that this user can write, or name another one"
_HINTS = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EACCES: _MAKE_WRITABLE,
    errno.EPERM: _MAKE_WRITABLE,
    errno.EROFS: _MAKE_WRITABLE,
    errno.EEXIST: _MAKE_WRITABLE,
    errno.ENOTDIR: _MAKE_WRITABLE,
}


@dataclass(frozen=True)
class ModelVersion:
    """One version on disk.

    Attributes:
      version: its number.
      path: the directory of the SavedModel.
      digest: of what was published; None where someone else made the version.
      published_at: UTC, ISO 8601; None where someone else made the version.
      facts: what its publisher said about it, such as the run id.
    """

    version: int
    path: Path
    digest: str | None
    published_at: str | None
    facts: dict[str, Any]

    def is_intact(self) -> bool:
        """Reads every byte; false unless they are the ones that were published."""
        try:
            return self.digest is not None and digest.of_tree(self.path) == self.digest
        except OSError:
            return False


@dataclass(frozen=True)
class Publication:
    """What ``publish`` did.

    Attributes:
      version: the version that serves the model now.
      state: ``already_served`` where the newest version was this model before.
      path: the directory of that version.
      digest: the model's digest.
    """

    version: int
    state: Literal["pushed", "already_served"]
    path: Path
    digest: str


class ModelStore:
    """The versions below a root, which need not exist before the first push."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._staging = self.root / ".staging"
        self._records = self.root / ".versions"
        self._counter = self._records / "next"

    def versions(self) -> list[ModelVersion]:
        """Returns all versions, oldest first, without waiting for publishers.

        Raises:
          ServingError: the root cannot be read or is not a directory.
        """
        with self._os_errors_as("The serving directory cannot be read"):
            try:
                names = os.listdir(self.root)
            except FileNotFoundError:
                return []
            found = [
                self._load(number, self.root / name)
                for name in names
                if (number := _number(name)) is not None and (self.root / name).is_dir()
            ]
        return sorted(found, key=lambda version: (version.version, version.path.name))

    def newest(self) -> ModelVersion | None:
        """Returns the version that a server would load, None where there is none."""
        versions = self.versions()
        return versions[-1] if versions else None

    def publish(
        self,
        saved_model_dir: str | Path,
        *,
        facts: dict[str, Any],
        expected_digest: str | None = None,
    ) -> Publication:
        """Makes a copy of a SavedModel visible as a new version.

        Publishers wait for each other. Nothing is pushed where the newest version
        already is this model and is undamaged.

        Args:
          saved_model_dir: only read; it may be a version of this store.
          facts: what to remember with the version; JSON values.
          expected_digest: of the model as it was judged; None if it is not known.

        Raises:
          ServingError: the source is no SavedModel, is not what was judged or changed
            meanwhile, the disk is full, or the root cannot be written. No new version
            is visible then.
        """
        json.dumps(facts)  # What is no JSON must fail before anything is written.
        source = SavedModelTree.read(saved_model_dir)
        if expected_digest not in (None, source.digest):
            raise ServingError(
                "The model has changed since it was made; nothing was pushed.",
                where=saved_model_dir,
                expected=f"SHA-256 {expected_digest}, as it was evaluated",
                actual=source.digest,
                hint="run the whole pipeline again: it makes a damaged model anew",
            )
        with self._os_errors_as("The model could not be pushed"):
            self._make_directories()
            with atomic.lock(self.root / ".lock"):
                self._sweep()
                newest = self.newest()
                if newest and newest.digest == source.digest and newest.is_intact():
                    return Publication(
                        newest.version, "already_served", newest.path, source.digest
                    )
                version = self._publish_locked(source, facts)
        path = self.root / str(version)
        return Publication(version, "pushed", path, source.digest)

    def _publish_locked(self, source: SavedModelTree, facts: dict[str, Any]) -> int:
        try:
            source.copy_to(self._staging)
            version = self._take_number()
            record = {
                "digest": source.digest,
                "published_at": datetime.now(timezone.utc).isoformat(),
                "facts": facts,
            }
            atomic.write_json(self._records / f"{version}.json", record)
            # Rename last: TensorFlow Serving ignores names that are not numbers.
            os.rename(self._staging, self.root / str(version))
        except BaseException:
            shutil.rmtree(self._staging, ignore_errors=True)
            raise
        atomic.sync_directory(self.root)
        return version

    def _make_directories(self) -> None:
        for directory in (self.root, self._records):
            if not directory.is_dir():
                directory.mkdir(parents=True, exist_ok=True)
                directory.chmod(0o755)

    def _sweep(self) -> None:
        """Removes what killed publishers left: under the lock, nobody else copies."""
        if self._staging.exists():
            shutil.rmtree(self._staging)
        known = {self._counter.name, *(f"{number}.json" for number in self._numbers())}
        for path in self._records.iterdir():
            if path.name not in known:
                path.unlink()

    def _take_number(self) -> int:
        """Takes a number for good: a publisher killed after this leaves a gap."""
        try:
            counted = int(self._counter.read_text())
        except (FileNotFoundError, ValueError):
            counted = 1
        number = max(counted, 1 + max(self._numbers(), default=0))
        atomic.write_text(self._counter, f"{number + 1}\n")
        return number

    def _numbers(self) -> set[int]:
        """Returns every number in use, be it by a directory or by a stray file."""
        numbers = map(_number, os.listdir(self.root))
        return {number for number in numbers if number is not None}

    def _load(self, number: int, path: Path) -> ModelVersion:
        try:
            record = json.loads((self._records / f"{path.name}.json").read_text())
            return ModelVersion(
                number, path, record["digest"], record["published_at"], record["facts"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return ModelVersion(number, path, None, None, {})

    @contextlib.contextmanager
    def _os_errors_as(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ServingError(
                f"{what}: {error.strerror}.",
                where=self.root,
                actual=str(error),
                hint=_HINTS.get(error.errno or 0),
            ) from error


def _number(name: str) -> int | None:
    """Returns the number that TensorFlow Serving would read from a name, or None."""
    is_number = name.isascii() and name.isdigit() and int(name) <= _MAX_VERSION
    return int(name) if is_number else None
