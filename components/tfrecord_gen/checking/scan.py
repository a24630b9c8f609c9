"""Every record of a TFRecord file, checked, and every fault, by name.

Nothing here raises for bad bytes, and nothing imports TensorFlow for a local file.
"""

from __future__ import annotations

from collections.abc import Iterator

from components.tfrecord_gen.checking.check_examples import check_examples
from components.tfrecord_gen.reading.batch import Batch
from components.tfrecord_gen.reading.cut_frames import cut_frames
from components.tfrecord_gen.reading.fault import Fault
from components.tfrecord_gen.reading.input_stream import InputStream
from components.tfrecord_gen.reading.record import Record


def scan(path: str) -> Iterator[Record | Fault]:
    """Yields the good records of a file and its faults, in order.

    The file may be uncompressed, gzip (of several members too) or zlib, whatever its
    name. Memory stays at a few megabytes and one record.

    Args:
      path: a local path, or an address with "://".

    Raises:
      DataError: the file holds tf.SequenceExamples.
      UsageError: the file cannot be read.
    """
    with InputStream(path) as stream:
        for item in scan_batches(stream):
            if isinstance(item, Fault):
                yield item
            else:
                yield from item


def scan_batches(stream: InputStream) -> Iterator[Batch | Fault]:
    """Yields the good records of a stream in batches, and its faults, in order.

    Raises:
      DataError, UsageError: as ``scan`` does.
    """
    for item in cut_frames(stream):
        if isinstance(item, Fault):
            yield item
        else:
            yield from check_examples(stream.path, item)
