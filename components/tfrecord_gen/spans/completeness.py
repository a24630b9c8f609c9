"""When a span that may still be being written counts as complete."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from components.tfrecord_gen.spans.file_lister import FileLister


@dataclass(frozen=True)
class CompleteWhen:
    """What must hold of a span's files; with neither, a span is taken as it is found.

    Attributes:
      marker: a file of this name lies in the span's directory.
      quiet_for_s: no file was changed within this many seconds.
    """

    marker: str | None = None
    quiet_for_s: float | None = None

    def to_json(self) -> str:
        """Returns the form that an exec property has."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> CompleteWhen:
        """Reads what ``to_json`` has written."""
        return cls(**json.loads(text))

    def why_unmarked(self, lister: FileLister, folders: Iterable[str]) -> str | None:
        """Returns which folder has no marker; None if all have, or need none.

        Ask before the files are listed: the marker is written after the last of them.
        """
        if self.marker is None:
            return None
        for folder in folders:
            if not lister.exists(f"{folder}/{self.marker}" if folder else self.marker):
                return f"no {self.marker} in {lister.path(folder)}"
        return None

    def why_unquiet(
        self, lister: FileLister, files: Iterable[str], now_s: float
    ) -> str | None:
        """Returns which file was changed last, and when; None if long enough ago.

        Args:
          lister: of the data's directory.
          files: relative paths of all files of the span.
          now_s: seconds since 1970.
        """
        if self.quiet_for_s is None:
            return None
        last_s, path = max((lister.changed_s(path), path) for path in files)
        ago_s = now_s - last_s
        if ago_s >= self.quiet_for_s:
            return None
        when = f"{ago_s:.0f} s ago" if ago_s >= 0 else f"{-ago_s:.0f} s in the future"
        return f"{path} was changed {when}, not {self.quiet_for_s:g} s ago or more"
