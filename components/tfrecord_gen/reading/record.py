"""One good record of a TFRecord file."""

from __future__ import annotations

from typing import NamedTuple


# Not a frozen dataclass, which takes four times as long to make.
class Record(NamedTuple):
    """A record whose framing and checksums hold, and that is a tf.Example.

    Attributes:
        number: its place in the file, from 1; bad records count.
        offset: where its frame starts in the decompressed stream, in bytes.
        data: the record's bytes.
    """

    number: int
    offset: int
    data: bytes
