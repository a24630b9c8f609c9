"""The good records of files that have been taken in, to be looked at once more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from components.tfrecord_gen.reading.record import Record
from components.tfrecord_gen.reading.scan import scan
from sluice.errors import SluiceError


def sound_records(path: str) -> Iterator[Record]:
    """Yields the good records of a file; it may be gone, or have changed, since.

    Where it cannot be read any further there are just no more.
    """
    with contextlib.suppress(SluiceError):
        for record in scan(path):
            if isinstance(record, Record):
                yield record
