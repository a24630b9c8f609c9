"""Versions of one model in a place that TensorFlow Serving can watch.

A server loads the highest version number as soon as it appears. So a version appears
as a whole, never changes, and a later push always has a higher number. ``store_at``
returns the store of a directory of this machine (``local_store``) or of a ``gs://``
address (``bucket_store``); both have this layout:

    7/                    a SavedModel, byte for byte what was published
    .versions/7.json      digest, time and facts of version 7, and why it was retired
    .versions/owner.json  the pipeline that may publish here

The record is not in the version's folder, so that ``digest.of_tree`` of a version is
the model's digest. The record of a deleted version stays, so that its number is never
used again. No store loads models.
"""

from __future__ import annotations

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from serving.store_owner import Owner, check_owner
from sluice.errors import RemoteError, ServingError, SluiceError
from sluice.storage import digest
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import is_remote, storage_for
from sluice.storage.storage_errors import is_unreachable

GRAPH = "saved_model.pb"
# A fact of a version that is an earlier one again: its number and time, the reason.
ROLLBACK = "rollback"


@dataclass(frozen=True)
class ModelVersion:
    """One version in a store.

    Attributes:
      version: its number.
      uri: the directory of the SavedModel, a path or an address.
      digest: of the published model; None if it was not recorded.
      published_at: UTC, ISO 8601; None likewise.
      facts: recorded by the publisher, such as the run id.
      generations: of its objects in a bucket, by name; None on a disk.
      retired: the reason why its model was retired; None if it was not.
    """

    version: int
    uri: str
    digest: str | None
    published_at: str | None
    facts: dict[str, Any]
    generations: Mapping[str, str] | None = None
    retired: str | None = None

    @property
    def rollback(self) -> str | None:
        """Which version it is again, and why; None of a model that a run pushed."""
        about = self.facts.get(ROLLBACK)
        return about and f"version {about['version']} again: {about['reason']}"

    @property
    def first_published_at(self) -> str | None:
        """When its model was pushed, also of a rollback."""
        about = self.facts.get(ROLLBACK)
        return about["published_at"] if about else self.published_at

    def difference(self) -> str | None:
        """Returns the difference from the published model, if any.

        Reads every byte, except of objects that are still of the recorded generations:
        an object that is replaced has another.
        """
        if self.digest is None:
            return "no record of a push"
        try:
            if self.generations and self.generations == generations_of(self.uri):
                return None
            now = digest.of_tree(self.uri)
        except OSError as error:
            return str(error)
        return None if now == self.digest else f"files with the digest {now}"

    def is_intact(self) -> bool:
        """Whether the files are those that were published; see ``difference``."""
        return self.difference() is None


@dataclass(frozen=True)
class Publication:
    """Result of ``publish``; ``already_served`` if the newest version was this model.

    ``uri`` is the directory of the version, ``digest`` that of the model.
    """

    version: int
    state: Literal["pushed", "already_served"]
    uri: str
    digest: str


@dataclass(frozen=True)
class SavedModel:
    """A SavedModel on a local file system.

    Attributes:
      root: its directory.
      names: of its files, relative to the root; ``GRAPH`` is the last.
      digest: ``digest.of_tree`` of the root when it was read.
    """

    root: Path
    names: tuple[str, ...]
    digest: str

    @classmethod
    def read(cls, root: Path) -> SavedModel:
        """Lists a SavedModel and computes its digest.

        Raises:
          ServingError: it is no SavedModel.
        """
        files = {entry.name: entry.size_bytes for entry in digest.files_below(root)}
        if not files.pop(GRAPH, 0):
            raise ServingError(
                f"this is not a SavedModel, which has a {GRAPH}; nothing was pushed",
                where=root,
            )
        return cls(root, (*files, GRAPH), digest.of_tree(root))

    def check_copied(self, copied: str) -> None:
        """Raises ServingError if a copy has another digest."""
        if copied != self.digest:
            raise ServingError(
                "the model changed while it was being copied; nothing was pushed",
                where=self.root,
                hint="wait until it has been written, then push again",
            )

    def record(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Returns the record of a version that is published now."""
        now = datetime.now(timezone.utc).isoformat()
        return {"digest": self.digest, "published_at": now, "facts": facts}


class ModelStore(ABC):
    """The versions below a root, which need not exist before the first push."""

    def __init__(self, uri: str | Path) -> None:
        self.uri = str(uri).rstrip("/")
        self._storage = storage_for(self.uri)
        self._records = f"{self.uri}/.versions"
        self._owner = f"{self._records}/owner.json"

    def versions(self) -> list[ModelVersion]:
        """Returns all versions, oldest first, without waiting for publishers.

        Raises:
          ServingError: the root cannot be read; RemoteError if it is in a bucket.
        """
        return [*self._newest_first()][::-1]

    def newest(self) -> ModelVersion | None:
        """Returns the version that a server would load; None if there is none."""
        return next(self._newest_first(), None)

    def _newest_first(self) -> Iterator[ModelVersion]:
        kind = RemoteError if is_remote(self.uri) else ServingError
        with self._os_errors_as("the serving directory cannot be read", kind):
            folders = {
                number: entry.uri
                for entry in self._storage.list(self.uri)
                if entry.kind == "folder" and (number := number_of(entry.name))
            }
            for number in sorted(folders, reverse=True):
                if version := self._load(number):
                    yield replace(version, uri=folders[number])

    @abstractmethod
    def prepare(self, owner: Owner | None = None) -> None:
        """Checks that ``publish`` can succeed, so that a run fails before training.

        A store without an owner gets none.

        Args:
          owner: as ``publish`` takes it.

        Raises:
          UsageError: the root cannot be written, or belongs to another pipeline.
          RemoteError: its service does not answer.
        """

    def publish(
        self,
        saved_model_dir: str | Path,
        *,
        facts: dict[str, Any],
        owner: Owner | None = None,
    ) -> Publication:
        """Publishes a copy of a SavedModel as a new version.

        Nothing is pushed if the newest version is this model, undamaged; of concurrent
        publishers of one model only one pushes it.

        Args:
          saved_model_dir: the model; may be a version of this store.
          facts: to record with the version; JSON values.
          owner: the publishing pipeline, which becomes the owner of a store without
            one; None if it is no pipeline, which cannot publish to an owned store.

        Raises:
          ServingError: the source is no SavedModel or changed during the copy, the disk
            is full, or the root cannot be written. No new version is visible then.
          UsageError: the store belongs to another pipeline. Nothing has changed then.
        """
        with (
            self._os_errors_as("the model could not be pushed"),
            local_copy(str(saved_model_dir)) as local_dir,
        ):
            return self._publish(SavedModel.read(local_dir), facts, owner)

    @abstractmethod
    def _publish(
        self, source: SavedModel, facts: dict[str, Any], owner: Owner | None
    ) -> Publication: ...

    def delete(self, version: int, owner: Owner) -> None:
        """Deletes the files of a version that is not the newest.

        Raises:
          UsageError: the store belongs to another pipeline; nothing was deleted.
          ServingError: something cannot be deleted.
        """
        uri = f"{self.uri}/{version}"
        with self._os_errors_as(f"version {version} could not be deleted"):
            check_owner(self._owner, owner)
            # First what TensorFlow Serving cannot load it without.
            self._storage.delete_tree(f"{uri}/{GRAPH}")
            self._storage.delete_tree(uri)

    def retire(self, version: int, reason: str, owner: Owner) -> None:
        """Records that the model of a version was retired; it stays served.

        Raises:
          UsageError: the store belongs to another pipeline.
          ServingError: the record cannot be written.
        """
        with self._os_errors_as(f"version {version} could not be marked as retired"):
            check_owner(self._owner, owner)
            record = json.loads(self._storage.read(self._record_of(version)))
            content = json.dumps({**record, "retired": reason}, indent=2).encode()
            self._storage.write_atomically(self._record_of(version), content)

    def _already_served(self, source: SavedModel) -> Publication | None:
        newest = self.newest()
        if newest and newest.digest == source.digest and newest.is_intact():
            version, uri = newest.version, newest.uri
            return Publication(version, "already_served", uri, source.digest)
        return None

    def _next_number(self) -> int:
        """Returns the number after the highest of all names and records."""
        records = self._storage.names(self._records)
        stems = (name.partition(".")[0] for name in records)
        numbers = map(number_of, (*self._storage.names(self.uri), *stems))
        return max([0, *filter(None, numbers)]) + 1

    def _record_of(self, number: int) -> str:
        return f"{self._records}/{number}.json"

    def _load(self, number: int) -> ModelVersion | None:
        """Returns a version as it was recorded; None without a valid record."""
        try:
            record = json.loads(self._storage.read(self._record_of(number)))
            published = record["digest"], record["published_at"], record["facts"]
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
            return None
        rest = record.get("generations"), record.get("retired")
        return ModelVersion(number, f"{self.uri}/{number}", *published, *rest)

    @contextlib.contextmanager
    def _os_errors_as(
        self, message: str, kind: type[SluiceError] = ServingError
    ) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = RemoteError if is_unreachable(error) else kind
            raise kind(f"{message}: {error}", where=self.uri) from error


def store_at(uri: str | Path) -> ModelStore:
    """Returns the store in a directory or at a ``gs://`` address."""
    if is_remote(str(uri)):
        from serving.bucket_store import BucketModelStore

        return BucketModelStore(str(uri))
    from serving.local_store import LocalModelStore

    return LocalModelStore(uri)


def generations_of(uri: str) -> dict[str, str]:
    """Returns the generation of each file below a folder, by name."""
    return {entry.name: entry.generation for entry in digest.files_below(uri)}


def number_of(name: str) -> int | None:
    """Returns the number that TensorFlow Serving would read from a name, or None."""
    return int(name) if name.isascii() and name.isdigit() else None
