"""Model store on ``gs://``, which has neither a lock nor a rename of folders.

A publisher claims the next number with an object that has the model's digest
(``.versions/8.claim``). Then it uploads the model, ``saved_model.pb`` last, and writes
the record. The claim is created on the condition that there is none:

* Readers trust only versions with a record, so a half-written one is never seen.
* Publishers have different numbers; a claim of one that was killed stays unused.

TensorFlow Serving lists the folders of the root and loads the highest number. Without
its ``saved_model.pb`` it cannot, keeps the version before, and tries again a minute
later, five times unless ``max_num_load_retries`` says otherwise. A killed upload leaves
such a folder, which the next version supersedes.
"""

from __future__ import annotations

import json
import secrets
import shutil
from typing import Any

from serving.model_store import (
    GRAPH,
    ModelStore,
    Publication,
    SavedModel,
    generations_of,
)
from serving.store_owner import Owner, check_owner, claim
from sluice.errors import UsageError
from sluice.storage import digest


class BucketModelStore(ModelStore):
    """Versions at a ``gs://`` address; publishers do not wait for each other."""

    def prepare(self, owner: Owner | None = None) -> None:
        with self._os_errors_as("the serving directory cannot be used", UsageError):
            check_owner(self._owner, owner)
            self._next_number()
            probe = f"{self.uri}/.probe-{secrets.token_hex(8)}"
            self._storage.write_atomically(probe, b"")
            self._storage.delete(probe)

    def _publish(
        self, source: SavedModel, facts: dict[str, Any], owner: Owner | None
    ) -> Publication:
        check_owner(self._owner, owner)
        claim(self._owner, owner, facts)
        while True:
            number = self._next_number()
            # Looked up last, else one that was at work could be overlooked.
            if served := self._already_served(source):
                return served
            if self._claim(number, source.digest):
                self._upload(number, source, facts)
                uri = f"{self.uri}/{number}"
                return Publication(number, "pushed", uri, source.digest)

    def _claim(self, number: int, model_digest: str) -> bool:
        claim = f"{self._records}/{number}.claim"
        return self._storage.write_if_absent(claim, model_digest.encode())

    def _upload(self, number: int, source: SavedModel, facts: dict[str, Any]) -> None:
        """Uploads and records a model."""
        target = f"{self.uri}/{number}"
        for name in source.names:
            if name == GRAPH:
                source.check_copied(digest.of_tree(source.root))
            with (
                open(source.root / name, "rb") as file,
                self._storage.open(f"{target}/{name}", "wb") as uploaded,
            ):
                shutil.copyfileobj(file, uploaded, 1 << 20)
        record = {**source.record(facts), "generations": generations_of(target)}
        content = json.dumps(record, indent=2).encode()
        self._storage.write_atomically(self._record_of(number), content)
