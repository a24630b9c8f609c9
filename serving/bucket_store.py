"""Model store on ``gs://``, which has neither a lock nor a rename of folders.

Beside the objects that ``model_store`` names it has:

    .versions/8.claim     digest of the model that is being published as version 8

A publisher uploads the model below ``.staging-<random>/``, claims the next number,
copies the objects to ``8/`` on the server's side, and writes the record. Claim and
record are created with the precondition that there is none (``if_generation`` 0):

* Readers trust only versions with a record, so a half-written one is never seen.
* Two publishers of one model complete the same claim: whose record is second has pushed
  nothing. Publishers of different models have different numbers.
* A claim that its publisher has left is given up with an empty record, after which it
  cannot be published any more; then its objects are deleted.

TensorFlow Serving lists the folders of the root and loads the highest number, complete
or not. Therefore ``saved_model.pb`` is copied last: without it the server refuses to
load the version, keeps the previous one, and tries again a minute later (five times,
see ``max_num_load_retries``). Copies on the server's side take a moment, uploads
minutes. A publisher killed between two copies leaves such a folder; the next push of
the same model completes it, and a push or a run ten minutes later deletes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from serving.model_store import (
    ModelStore,
    ModelVersion,
    Publication,
    check_number,
    generations_of,
    new_record,
    number_of,
    read_record,
)
from serving.saved_model_tree import MODEL_FILES, SavedModelTree
from serving.store_owner import Owner, check_owner, claim
from sluice.errors import ServingError, UsageError
from sluice.storage import digest
from sluice.storage.storage import Entry, PreconditionFailedError, storage_for

_CHUNK_BYTES = 1 << 20
_ATTEMPTS = 100
# By the service's clock. From claim to record there are only copies on its side.
_CLAIM_LEFT_AFTER_S = 600
_STAGING_LEFT_AFTER_S = 86_400
# Record of a number that is given up.
_GIVEN_UP = b'{"given_up": true}\n'


@dataclass(frozen=True)
class _Listing:
    """Names in a store, in the order of one moment.

    Attributes:
      taken: numbers that are not free, with the place that uses them.
      folders: numbers of the folders with versions.
      records: numbers that have a record, lowest first.
      claims: numbers that have a claim, with its object.
      stagings: uploads in progress.
    """

    taken: dict[int, str]
    folders: set[int]
    records: Sequence[int]
    claims: dict[int, Entry]
    stagings: Sequence[str]


class BucketModelStore(ModelStore):
    """Versions at a ``gs://`` address; publishers do not wait for each other."""

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self._storage = storage_for(uri)
        self._records = f"{self.uri}/.versions"
        self._owner = f"{self._records}/owner.json"

    def versions(self) -> list[ModelVersion]:
        with self._os_errors_as("the serving directory cannot be read"):
            listing = self._list()
            found = map(self._load, listing.records)
            return [item for item in found if item and item.version in listing.folders]

    def newest(self) -> ModelVersion | None:
        with self._os_errors_as("the serving directory cannot be read"):
            return self._newest(self._list())

    def prepare(self, owner: Owner | None = None) -> None:
        with self._os_errors_as("the serving directory cannot be used", UsageError):
            check_owner(self._owner, owner)
            probe = f"{self._new_staging()}/probe"
            self._storage.write_atomically(probe, b"")
            now_s = self._storage.stat(probe).modified_s
            self._storage.delete_tree(probe)
            listing = self._list()
            self._next_number(listing)
            self._sweep(listing, now_s)

    def _publish(
        self, source: SavedModelTree, facts: dict[str, Any], owner: Owner | None
    ) -> Publication:
        check_owner(self._owner, owner)
        listing = self._list()
        self._next_number(listing)
        claim(self._owner, owner, facts)
        if served := self._already_served(self._newest(listing), source):
            return served
        staging = self._new_staging()
        try:
            now_s = self._upload(source, staging)
            self._sweep(listing, now_s)
            for _ in range(_ATTEMPTS):
                listing = self._list()
                newest = self._newest(listing)
                if served := self._already_served(newest, source):
                    return served
                number = self._claim(source.digest, listing, newest)
                if number and self._complete(number, source, staging, facts):
                    uri = f"{self.uri}/{number}"
                    return Publication(number, "pushed", uri, source.digest)
        finally:
            with contextlib.suppress(OSError):  # Otherwise swept a day later.
                self._storage.delete_tree(staging)
        raise ServingError(
            "the model could not be pushed: other publishers were always faster",
            where=self.uri,
            hint="push again",
        )

    def _list(self) -> _Listing:
        # The root first: whoever writes to a folder has a claim before.
        names = self._storage.list(self.uri)
        records = self._storage.list(self._records)
        numbered = [(number_of(entry.name), entry) for entry in names]
        known = {n: entry for n, entry in numbered if n is not None}
        taken = {number: entry.uri for number, entry in known.items()}
        folders = {n for n, e in numbered if n is not None and e.kind == "folder"}
        by_suffix: dict[str, dict[int, Entry]] = {"json": {}, "claim": {}}
        for entry in records:
            stem, _, suffix = entry.name.partition(".")
            if suffix in by_suffix and (number := number_of(stem)) is not None:
                by_suffix[suffix][number] = entry
                taken.setdefault(number, entry.uri)
        return _Listing(
            taken,
            folders,
            sorted(by_suffix["json"]),
            by_suffix["claim"],
            [entry.uri for entry in names if entry.name.startswith(".staging-")],
        )

    def _next_number(self, listing: _Listing) -> int:
        highest = max(listing.taken, default=0)
        culprit = listing.taken.get(highest, self.uri)
        return check_number(highest + 1, culprit, "gcloud storage mv")

    def _newest(self, listing: _Listing) -> ModelVersion | None:
        for number in reversed(listing.records):
            if number in listing.folders and (found := self._load(number)):
                return found
        return None

    def _load(self, number: int) -> ModelVersion | None:
        """Returns a recorded version; None where it has no valid record."""
        try:
            text = self._storage.read(f"{self._records}/{number}.json")
            return read_record(text, number, f"{self.uri}/{number}")
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _new_staging(self) -> str:
        return f"{self.uri}/.staging-{secrets.token_hex(8)}"

    def _upload(self, source: SavedModelTree, staging: str) -> float:
        """Uploads a model; returns the service's time, in seconds since 1970."""
        contents = {}
        for name in _saved_model_last(source):
            content = hashlib.sha256()
            with (
                open(source.root / name, "rb") as file,
                self._storage.open(f"{staging}/{name}", "wb") as target,
            ):
                while chunk := file.read(_CHUNK_BYTES):
                    content.update(chunk)
                    target.write(chunk)
            contents[name] = content.hexdigest()
        source.check_copied(digest.of_contents(contents))
        return self._storage.stat(f"{staging}/{name}").modified_s

    def _claim(
        self, model_digest: str, listing: _Listing, newest: ModelVersion | None
    ) -> int | None:
        """Returns a number to publish a model as; None if another publisher took it."""
        for number in sorted(listing.claims, reverse=True):
            later = newest is None or number > newest.version
            if later and number not in listing.records:
                # Its publisher may delete it before or while it is read.
                with contextlib.suppress(FileNotFoundError, PreconditionFailedError):
                    claimed = self._storage.read(listing.claims[number].uri)
                    if claimed.decode(errors="replace").strip() == model_digest:
                        return number
        number, claim = self._next_number(listing), f"{model_digest}\n".encode()
        is_ours = self._storage.write_if_absent(self._claim_of(number), claim)
        return number if is_ours else None

    def _complete(
        self, number: int, source: SavedModelTree, staging: str, facts: dict[str, Any]
    ) -> bool:
        """Copies the model to its folder and records it; False if it is given up."""
        target = f"{self.uri}/{number}"
        names = _saved_model_last(source)
        try:
            for name in names:
                self._storage.copy(f"{staging}/{name}", f"{target}/{name}")
            generations = generations_of(target)
            if set(generations) != set(names):
                self._give_up(number)
                return False
            record = {**new_record(source, facts), "generations": generations}
            content = json.dumps(record, indent=2).encode()
            where = f"{self._records}/{number}.json"
            is_published = self._storage.write_if_absent(where, content)
        except BaseException:
            with contextlib.suppress(OSError):  # Otherwise swept later.
                self._give_up(number)
            raise
        with contextlib.suppress(OSError):  # Otherwise swept later.
            self._finish(number)
        return is_published

    def _give_up(self, number: int) -> None:
        self._storage.write_if_absent(f"{self._records}/{number}.json", _GIVEN_UP)
        self._finish(number)

    def _finish(self, number: int) -> None:
        """Deletes the objects of a number that was given up, and then the claim."""
        if self._storage.read(f"{self._records}/{number}.json") == _GIVEN_UP:
            self._storage.delete_tree(f"{self.uri}/{number}")
        with contextlib.suppress(FileNotFoundError):
            self._storage.delete(self._claim_of(number))

    def _sweep(self, listing: _Listing, now_s: float) -> None:
        """Deletes what killed publishers have left."""
        for number, entry in listing.claims.items():
            if number in listing.records:
                self._finish(number)
            elif now_s - entry.modified_s > _CLAIM_LEFT_AFTER_S:
                self._give_up(number)
        for staging in listing.stagings:
            objects = self._storage.list(staging, recursive=True)
            written_s = max((entry.modified_s for entry in objects), default=now_s)
            if now_s - written_s > _STAGING_LEFT_AFTER_S:
                self._storage.delete_tree(staging)

    def _claim_of(self, number: int) -> str:
        return f"{self._records}/{number}.claim"


def _saved_model_last(source: SavedModelTree) -> list[str]:
    """Returns the names of a model's files, in the order in which they are written."""
    names = [PurePosixPath(file).as_posix() for file in source.files]
    return sorted(names, key=lambda name: (name in MODEL_FILES, name))
