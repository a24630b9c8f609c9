"""Record error: what is wrong with one record, or with a file from there on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordError:
    """A record that is rejected, or the loss of the rest of a file.

    The kinds:

    * ``length``: a length, or its checksum, is wrong; the rest of the file is lost.
    * ``too_large``: the record is longer than the config allows; it is not read.
    * ``truncated``: the file ends within a record.
    * ``checksum``: the checksum of the data is wrong.
    * ``not_example``: the bytes are no tf.Example.
    * ``not_tfrecord``: the first frame is none.
    * ``empty_file``: zero bytes.
    * ``compression``: the compressed stream is damaged or ends early.
    * ``image``: an image feature does not hold up.
    * ``no_partition_feature``: the feature that hashed splits go by is missing.

    Attributes:
        path: the file.
        number: number of the record, from 1; 0: the file as a whole.
        offset: where its frame starts in the decompressed stream, in bytes.
        kind: what is wrong.
        reason: what was expected and what was seen, in one line.
        data: the record's bytes, as far as they are known; None: unknown.
        lost_bytes: bytes that cannot be read because of it, in the decompressed stream;
            estimated by the ratio so far where the compressed stream is damaged.
    """

    path: str
    number: int
    offset: int
    kind: str
    reason: str
    data: bytes | None = None
    lost_bytes: int = 0
