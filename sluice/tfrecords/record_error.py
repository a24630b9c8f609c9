"""Record error: what is wrong with one record, or with a file from there on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordError:
    """A rejected record, or the loss of the rest of a file.

    The kinds:

    * ``length``: a length, or its checksum, is wrong; the rest of the file is lost.
    * ``too_large``: the record is longer than the config allows; it is not read.
    * ``truncated``: the file ends within a record.
    * ``checksum``: the checksum of the data is wrong.
    * ``not_example``: the bytes are no tf.Example.
    * ``not_tfrecord``: the file does not begin with a TFRecord frame.
    * ``empty_file``: zero bytes.
    * ``compression``: the compressed stream is damaged or ends early.
    * ``image``: an image cannot be decoded or is over a limit.
    * ``no_partition_feature``: the feature for hashed splits is missing.

    Attributes:
        number: number of the record, from 1; 0 for the file as a whole.
        offset: of its frame in the decompressed stream, in bytes.
        reason: expected and actual, in one line.
        data: the record's bytes, as far as known; None if unknown.
        lost_bytes: bytes of the decompressed stream that cannot be read because of it;
            estimated by the ratio so far if the compressed stream is damaged.
    """

    path: str
    number: int
    offset: int
    kind: str
    reason: str
    data: bytes | None = None
    lost_bytes: int = 0
