"""Versions of one model in a directory that TensorFlow Serving can watch.

A server loads the highest version number as soon as it appears. So a version appears
atomically, never changes, and a later push always has a higher number. Layout:

    7/                    a SavedModel, byte for byte what was published
    .versions/7.json      digest, time and facts of version 7
    .versions/next        the next free number; it never goes back
    .versions/owner.json  the pipeline that may publish here
    .staging-<random>/    a copy in progress
    .lock                 held while a version is published

The record is not in the version's directory, so that ``digest.of_tree`` of a version is
the model's digest. It is written before the rename that publishes the version.

This module does not load models or delete versions; of other files it deletes only
those left by a killed publisher. It does not follow links (``serving.regular_files``).
It needs a POSIX file system (``flock``, atomic rename), not an object store.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from serving.regular_files import (
    find_non_regular,
    is_directory,
    read_file,
    refuse_links,
)
from serving.saved_model_tree import SavedModelTree
from serving.store_owner import Owner, check_owner, claim
from sluice.errors import ServingError, SluiceError, UsageError
from sluice.storage import atomic, digest

# TensorFlow Serving reads a version's number into an int64.
_MAX_VERSION = 2**63 - 1
# Left by a killed publisher: its copy, and the temporary files of ``atomic``.
_STAGING = re.compile(r"\.staging-[0-9a-f]{16}")
_TEMPORARY = re.compile(r"\.(next|owner\.json|\d+\.json)\.[0-9a-f]{16}", re.ASCII)
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
      digest: of the published model; None if it was not recorded.
      published_at: UTC, ISO 8601; None likewise.
      facts: recorded by the publisher, such as the run id.
    """

    version: int
    path: Path
    digest: str | None
    published_at: str | None
    facts: dict[str, Any]

    def difference(self) -> str | None:
        """Reads every byte; returns the difference from the published model, if any."""
        if self.digest is None:
            return "no record of a push"
        try:
            if strange := find_non_regular(self.path):
                return f"a link or a special file, {strange}"
            found = digest.of_tree(self.path)
        except OSError as error:
            return str(error)
        return None if found == self.digest else f"files with the digest {found}"

    def is_intact(self) -> bool:
        """Reads every byte; whether they are those that were published."""
        return self.difference() is None


@dataclass(frozen=True)
class Publication:
    """Result of ``publish``.

    Attributes:
      version: the version of the model.
      state: ``already_served`` if the newest version already was this model.
      path: the directory of the version.
      digest: of the model.
    """

    version: int
    state: Literal["pushed", "already_served"]
    path: Path
    digest: str


class ModelStore:
    """The versions below a root, which need not exist before the first push."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._records = self.root / ".versions"
        self._counter = self._records / "next"
        self._owner = self._records / "owner.json"
        self._lock = self.root / ".lock"

    def versions(self) -> list[ModelVersion]:
        """Returns all versions, oldest first, without waiting for publishers.

        Raises:
          ServingError: the root cannot be read or is not a directory.
        """
        with self._os_errors_as("the serving directory cannot be read"):
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
        """Returns the version that a server would load; None if there is none."""
        versions = self.versions()
        return versions[-1] if versions else None

    def prepare(self, owner: Owner | None = None) -> None:
        """Checks that ``publish`` can succeed, so that a run fails before training.

        A store without an owner gets none.

        Args:
          owner: as ``publish`` takes it.

        Raises:
          UsageError: the root cannot be written, belongs to another pipeline, or
            contains a link or a version number that prevents a push.
        """
        with (
            self._os_errors_as("the serving directory cannot be used", UsageError),
            self._held(owner),
        ):
            atomic.write_text(self._counter, f"{self._next_number()}\n")
            staging = self._new_staging()
            staging.mkdir()
            staging.rmdir()

    def publish(
        self,
        saved_model_dir: str | Path,
        *,
        facts: dict[str, Any],
        expected_digest: str | None = None,
        owner: Owner | None = None,
    ) -> Publication:
        """Publishes a copy of a SavedModel as a new version.

        Concurrent publishers wait for each other. Nothing is pushed if the newest
        version is this model, undamaged.

        Args:
          saved_model_dir: the model; may be a version of this store.
          facts: to record with the version; JSON values.
          expected_digest: of the evaluated model; None if unknown.
          owner: the publishing pipeline, which becomes the owner of a store without
            one; None if it is no pipeline, which cannot publish to an owned store.

        Raises:
          ServingError: the source is no SavedModel, has another digest or changed
            during the copy, the disk is full, or the root cannot be written. No new
            version is visible then.
          UsageError: the store belongs to another pipeline, or contains a link or a
            version number that prevents a push. Nothing has changed then.
        """
        json.dumps(facts)  # Fails for other values before anything is written.
        source = SavedModelTree.read(saved_model_dir)
        if expected_digest not in (None, source.digest):
            raise ServingError(
                "the model has changed since it was trained; nothing was pushed",
                where=saved_model_dir,
                expected=f"SHA-256 {expected_digest}, as evaluated",
                actual=source.digest,
                hint="run the whole pipeline again: it replaces a damaged model",
            )
        with (
            self._os_errors_as("the model could not be pushed"),
            self._held(owner),
        ):
            self._next_number()
            claim(self._owner, owner, facts)
            newest = self.newest()
            if newest and newest.digest == source.digest and newest.is_intact():
                return Publication(
                    newest.version, "already_served", newest.path, source.digest
                )
            version = self._publish_locked(source, facts)
        path = self.root / str(version)
        return Publication(version, "pushed", path, source.digest)

    def _publish_locked(self, source: SavedModelTree, facts: dict[str, Any]) -> int:
        staging = self._new_staging()
        try:
            source.copy_to(staging)
            # The number is used up: a publisher killed after this leaves a gap.
            version = self._next_number()
            atomic.write_text(self._counter, f"{version + 1}\n")
            record = {
                "digest": source.digest,
                "published_at": datetime.now(timezone.utc).isoformat(),
                "facts": facts,
            }
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
            if _STAGING.fullmatch(path.name) and is_directory(path):
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
        highest = max(self._numbered(), default=(0, ""))
        try:
            counted = int(read_file(self._counter))
        except (FileNotFoundError, ValueError):
            counted = 1
        number = max(counted, highest[0] + 1)
        if number > _MAX_VERSION:
            culprit = self._counter if counted > highest[0] else self.root / highest[1]
            raise UsageError(
                "no version number is left that a model server could read",
                where=culprit,
                expected=f"a number below {_MAX_VERSION}",
                actual=f"{number - 1}",
                hint=f"if it is not needed: mv {culprit} {culprit}.aside",
            )
        return number

    def _numbered(self) -> list[tuple[int, str]]:
        names = os.listdir(self.root)
        return [
            (number, name) for name in names if (number := _number(name)) is not None
        ]

    def _load(self, number: int, path: Path) -> ModelVersion:
        record = None if path.is_symlink() else self._record(path.name)
        model_digest, published_at, facts = record or (None, None, {})
        return ModelVersion(number, path, model_digest, published_at, facts)

    def _record(self, name: str) -> tuple[str, str, dict[str, Any]] | None:
        """Returns digest, time and facts of a version; None without a valid record."""
        if self._records.is_symlink():
            return None
        try:
            record = json.loads(read_file(self._records / f"{name}.json"))
            return record["digest"], record["published_at"], record["facts"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextlib.contextmanager
    def _os_errors_as(
        self, what: str, kind: type[SluiceError] = ServingError
    ) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise kind(
                f"{what}: {error.strerror}",
                where=self.root,
                actual=str(error),
                hint=_HINTS.get(error.errno or 0),
            ) from error


def _number(name: str) -> int | None:
    """Returns the number that TensorFlow Serving would read from a name, or None."""
    is_number = name.isascii() and name.isdigit() and int(name) <= _MAX_VERSION
    return int(name) if is_number else None
