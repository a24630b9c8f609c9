"""The pushed versions of a pipeline: damaged, unrecorded and retired ones."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.config.config import Config
from runners.operations.pipeline_request import published_in
from serving.model_store import ModelVersion, store_at
from sluice.errors import ServingError
from sluice.record.run_record import RunRecord
from sluice.storage.storage import is_remote


@dataclass(frozen=True)
class ListedModel:
    """A pushed version.

    Attributes:
      version: its entry in the model store.
      damage: how its files differ from what was pushed; None if they do not.
    """

    version: ModelVersion
    damage: str | None

    @property
    def flaws(self) -> dict[str, str]:
        """The reasons why it is ``damaged``, ``unrecorded`` or ``retired``."""
        damaged = "damaged" if self.version.digest else "unrecorded"
        flaws = {damaged: self.damage, "retired": self.version.retired}
        return {state: why for state, why in flaws.items() if why}

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        version = asdict(self.version)
        del version["generations"]
        return {**version, "damage": self.damage}


def note_retired(record: RunRecord) -> str:
    """Notes in a record, and returns, that what is served now is retired, if it is.

    A bucket is not asked.
    """
    place = record.pushes[0].destination if record.pushes else ""
    newest = None
    with suppress(ServingError):
        newest = store_at(place).newest() if place and not is_remote(place) else None
    if newest is None or newest.retired is None:
        return ""
    text = f"version {newest.version} is retired ({newest.retired})"
    text += ", and served until another is pushed"
    record.note(text)
    return text


def list_models(config: Config) -> list[ListedModel]:
    """Returns the pushed versions of a pipeline, newest first; reads all their bytes.

    Raises:
      ServingError: the serving directory cannot be read; RemoteError if it is in a
        bucket.
    """
    versions = store_at(published_in(config)).versions()[::-1]
    return [ListedModel(item, item.difference()) for item in versions]
