"""Decides whether a span is complete, or may still be being written."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from components.tfrecord_gen.spans.file_lister import FileLister
from sluice.config_section import PositiveNumber, Section, Text


class CompleteWhen(Section):
    """How a span is known to be complete. `always`, the default: every span is."""

    marker: Text | None = Field(
        default=None, description="The span's directory contains a file of this name."
    )
    quiet_for_s: PositiveNumber | None = Field(
        default=None, description="None of its files has changed for this many seconds."
    )

    def why_unmarked(self, lister: FileLister, folders: Iterable[str]) -> str | None:
        """Returns which folder has no marker; None if all have, or need none.

        Call it before the files are listed: the marker is written last.
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
        """Returns the last changed file and when; None if that is long enough ago.

        Args:
          lister: of the data's directory.
          files: relative paths of all files of the span.
          now_s: seconds since 1970.
        """
        if self.quiet_for_s is None:
            return None
        last_s, path = max((lister.stat(path).changed_s, path) for path in files)
        ago_s = now_s - last_s
        if ago_s >= self.quiet_for_s:
            return None
        when = f"{ago_s:.0f} s ago" if ago_s >= 0 else f"{-ago_s:.0f} s in the future"
        return f"{path} was changed {when}, not {self.quiet_for_s:g} s ago or more"
