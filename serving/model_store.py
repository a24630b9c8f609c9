"""Versions of one model in a place that TensorFlow Serving can watch.

A server loads the highest version number as soon as it appears. So a version appears
as a whole, never changes, and a later push always has a higher number. ``store_at``
returns the store of a directory of this machine (``local_store``) or of a ``gs://``
address (``bucket_store``); both have this layout:

    7/                    a SavedModel, byte for byte what was published
    .versions/7.json      digest, time and facts of version 7
    .versions/owner.json  the pipeline that may publish here
    .staging-<random>/    a copy in progress

The record is not in the version's folder, so that ``digest.of_tree`` of a version is
the model's digest. No store loads models or deletes versions.
"""

from __future__ import annotations

import contextlib
import errno
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from serving.regular_files import find_non_regular
from serving.saved_model_tree import SavedModelTree
from serving.store_owner import Owner
from sluice.errors import ServingError, SluiceError, UsageError
from sluice.storage import digest
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import is_remote

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
_REMOTE_HINTS = {
    errno.EACCES: "grant these credentials roles/storage.objectUser on the bucket",
    errno.ENOENT: "create the bucket (gcloud storage buckets create), or name another "
    "in push.serving_dir",
}


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
    """

    version: int
    uri: str
    digest: str | None
    published_at: str | None
    facts: dict[str, Any]
    generations: Mapping[str, str] | None = None

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
            local = None if is_remote(self.uri) else Path(self.uri)
            if local and (strange := find_non_regular(local)):
                return f"a link or a special file, {strange}"
            found = digest.of_tree(self.uri)
        except OSError as error:
            return str(error)
        return None if found == self.digest else f"files with the digest {found}"

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


class ModelStore(ABC):
    """The versions below a root, which need not exist before the first push."""

    uri: str

    @abstractmethod
    def versions(self) -> list[ModelVersion]:
        """Returns all versions, oldest first, without waiting for publishers.

        Raises:
          ServingError: the root cannot be read or is not a directory.
        """

    def newest(self) -> ModelVersion | None:
        """Returns the version that a server would load; None if there is none."""
        versions = self.versions()
        return versions[-1] if versions else None

    @abstractmethod
    def prepare(self, owner: Owner | None = None) -> None:
        """Checks that ``publish`` can succeed, so that a run fails before training.

        A store without an owner gets none.

        Args:
          owner: as ``publish`` takes it.

        Raises:
          UsageError: the root cannot be written, belongs to another pipeline, or
            contains a link or a version number that prevents a push.
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
          UsageError: the store belongs to another pipeline, or contains a link or a
            version number that prevents a push. Nothing has changed then.
        """
        json.dumps(facts)  # Fails for other values before anything is written.
        with (
            self._os_errors_as("the model could not be pushed"),
            local_copy(str(saved_model_dir)) as local_dir,
        ):
            source = SavedModelTree.read(local_dir)
            return self._publish(source, facts, owner)

    @abstractmethod
    def _publish(
        self, source: SavedModelTree, facts: dict[str, Any], owner: Owner | None
    ) -> Publication: ...

    def _already_served(
        self, newest: ModelVersion | None, source: SavedModelTree
    ) -> Publication | None:
        if newest and newest.digest == source.digest and newest.is_intact():
            version, uri = newest.version, newest.uri
            return Publication(version, "already_served", uri, source.digest)
        return None

    @contextlib.contextmanager
    def _os_errors_as(
        self, what: str, kind: type[SluiceError] = ServingError
    ) -> Iterator[None]:
        hints = _REMOTE_HINTS if is_remote(self.uri) else _HINTS
        try:
            yield
        except OSError as error:
            raise kind(
                f"{what}: {error.strerror}",
                where=self.uri,
                actual=str(error),
                hint=hints.get(error.errno or 0),
            ) from error


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


def new_record(source: SavedModelTree, facts: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a version that is published now."""
    return {
        "digest": source.digest,
        "published_at": datetime.now(timezone.utc).isoformat(),
        "facts": facts,
    }


def read_record(text: str | bytes, version: int, uri: str) -> ModelVersion:
    """Returns the version that a record describes.

    Raises:
      ValueError, KeyError, TypeError: it is no record of a published version.
    """
    record = json.loads(text)
    published = record["digest"], record["published_at"], record["facts"]
    return ModelVersion(version, uri, *published, record.get("generations"))


def number_of(name: str) -> int | None:
    """Returns the number that TensorFlow Serving would read from a name, or None."""
    is_number = name.isascii() and name.isdigit() and int(name) <= _MAX_VERSION
    return int(name) if is_number else None


def check_number(number: int, culprit: str, move: str) -> int:
    """Returns the number of a version to come, if a server can read it.

    Args:
      number: the lowest unused one.
      culprit: the file or folder that uses up the numbers below.
      move: command that moves a file.

    Raises:
      UsageError: it does not fit into an int64.
    """
    if number > _MAX_VERSION:
        raise UsageError(
            "no version number is left that a model server could read",
            where=culprit,
            expected=f"a number below {_MAX_VERSION}",
            actual=f"{number - 1}",
            hint=f"if it is not needed: {move} {culprit} {culprit}.aside",
        )
    return number
