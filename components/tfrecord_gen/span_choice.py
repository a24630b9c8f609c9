"""The files of a run: chosen once, stored as JSON, and what its nodes ingest.

The operation chooses before the run starts. Its nodes, and a resumed run, ingest these
files and not those delivered later. Without a choice the node chooses.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.input_files import Window
from components.tfrecord_gen.newest_spans import select_spans
from components.tfrecord_gen.settings import SETTINGS, SPANS, Ingestion
from sluice.errors import WorkspaceError
from sluice.splits import SERVING
from sluice.storage.storage import storage_for

SPANS_FILE = "spans.json"
# The environment variable that tells the nodes of a run where its choice is stored.
SPANS_PATH = "SLUICE_SPANS"


@dataclass(frozen=True)
class SpanChoice:
    """The files of one run.

    Attributes:
      data: to train and evaluate on.
      serving: serving requests to compare with; None where the config has none.
    """

    data: Window
    serving: Window | None = None

    @property
    def windows(self) -> dict[str, Window]:
        """The windows by input, as a run's record names them."""
        serving = {} if self.serving is None else {SERVING: self.serving}
        return {"data": self.data, **serving}

    def to_json(self) -> bytes:
        """Returns what ``load`` reads."""
        from pydantic import TypeAdapter

        return TypeAdapter(SpanChoice).dump_json(self, indent=2)

    @classmethod
    def load(cls, uri: str | Path) -> SpanChoice:
        """Reads a stored choice.

        Raises:
          FileNotFoundError: there is none.
          WorkspaceError: it is damaged.
        """
        from pydantic import TypeAdapter, ValidationError

        content = storage_for(uri).read(str(uri))
        try:
            return TypeAdapter(SpanChoice).validate_json(content)
        except ValidationError as error:
            raise WorkspaceError(
                f"the stored spans of the run are damaged: {error}", where=uri
            ) from error


def window_of(properties: Mapping[str, Any]) -> Window:
    """Returns the files that a node ingests, according to its exec properties.

    They are those chosen for its run, or else the newest complete spans.

    Raises:
      ConfigError, DataError, UsageError: as ``select_spans`` does.
      DataError: a chosen file has changed, or is gone.
    """
    settings = Ingestion.model_validate_json(properties[SETTINGS])
    if uri := properties.get(SPANS) or os.environ.get(SPANS_PATH):
        for window in SpanChoice.load(uri).windows.values():
            if window.patterns == settings.patterns:
                window.check_unchanged()
                return window
    return select_spans(settings, time.time())
