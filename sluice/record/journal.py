"""Journal: the append-only file of a run's events, one JSON object per line."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from sluice.clock import utc_now
from sluice.errors import UsageError
from sluice.record.events import Event, parse_event

_FILE = "journal.jsonl"


class JournalError(UsageError):
    """The journal of a run cannot be read completely."""


class Journal:
    """The journal in the folder of a run; several processes may append to it."""

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / _FILE
        self._offset = 0
        self._last: tuple[bytes, Event] | None = None

    def append(self, event: Event) -> Event:
        """Writes an event and returns it with ``at``, by default the time of writing.

        Raises:
          OSError: it could not be written completely, such as on a full disk.
        """
        dated = event if event.at else replace(event, at=utc_now("microseconds"))
        content = json.dumps(dated.to_dict()).encode()
        line = content + b"\n"
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                # A full disk has truncated the last line.
                line = b"\n" + line
            # After a partial write the next call raises the error.
            while line:
                line = line[os.write(handle, line) :]
        finally:
            os.close(handle)
        self._last = content, dated
        return dated

    def events(self) -> list[Event]:
        """Returns all events so far; see ``new_events``."""
        return Journal(self.path.parent).new_events()

    def new_events(self) -> list[Event]:
        """Returns the events since the last call, by any process.

        A line that a kill or a full disk has truncated is skipped.

        Raises:
          JournalError: a complete line is not an event of this version.
        """
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._offset:
                    # It was deleted and created again.
                    self._offset = 0
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        events = [self._parse(line) for line in whole.splitlines()]
        return [event for event in events if event is not None]

    def _parse(self, line: bytes) -> Event | None:
        if self._last and line == self._last[0]:
            return self._last[1]
        try:
            data = json.loads(line)
        except ValueError:
            return None
        if not isinstance(data, dict):
            return None
        try:
            return parse_event(data)
        except ValueError as error:
            run_id = self.path.parent.name
            raise JournalError(
                f"the journal of run {run_id} was written by another version of Sluice",
                where=self.path,
                actual=f"an event {data.get('event')!r} of another form",
                hint="start a new run with `sluice run`; cached nodes are skipped",
            ) from error
