"""Reads the bytes of an input file once, and decompresses gzip.

The compression is detected from the content, not the name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from sluice.storage.storage import storage_for
from sluice.storage.storage_errors import explain_unreadable
from sluice.tfrecords.frame_encoding import HEADER, length_of

# What a damaged gzip stream loses before the damage is at most a chunk.
CHUNK_BYTES = 1 << 16
BLOCK_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31


class InputStream:
    """A file that is read once, front to end.

    Args:
      path: the file, local or with "://".
      tees: each gets every chunk of the file's own bytes.
      generation: that must be read; None for the current one.

    Attributes:
      compression: "none" or "gzip".
      one_member: at the end: whether the stream is one gzip member and nothing else.
      damage: at the end: why the compressed stream could not be read further.
      lost_bytes: decompressed size of what was not read, estimated by the ratio so far.
      size_bytes: the file's bytes so far.
      content_bytes: decompressed bytes so far.
    """

    def __init__(
        self,
        path: str,
        tees: Sequence[Callable[[bytes], object]] = (),
        generation: str | None = None,
    ) -> None:
        self.path = path
        self.damage: str | None = None
        self.lost_bytes = self.size_bytes = 0
        self.content_bytes = 0
        self._tees = tees
        with explain_unreadable(path):
            self._file: IO[bytes] = storage_for(path).open(
                path, "rb", generation=generation
            )
            self._first = self._file.read(CHUNK_BYTES)
        head = self._first[: HEADER.size]
        # A first length of 35,615 looks like gzip: the checksum of the length decides.
        is_gzip = head.startswith(_GZIP_MAGIC) and length_of(head) is None
        self.compression = "gzip" if is_gzip else "none"
        self.one_member = is_gzip

    def __enter__(self) -> InputStream:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def blocks(self) -> Iterator[bytes]:
        """Yields the content, decompressed, in blocks of at most 256 KiB.

        Raises:
          UsageError: the file cannot be read.
        """
        chunks = self._chunks()
        for block in self._inflate(chunks) if self.compression == "gzip" else chunks:
            self.content_bytes += len(block)
            yield block

    def _chunks(self) -> Iterator[bytes]:
        chunk, self._first = self._first, b""
        while chunk:
            self.size_bytes += len(chunk)
            for tee in self._tees:
                tee(chunk)
            yield chunk
            with explain_unreadable(self.path):
                chunk = self._file.read(CHUNK_BYTES)

    def _inflate(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        decoder, rest = zlib.decompressobj(_GZIP_WINDOW_BITS), b""
        try:
            for rest in chunks:
                while rest:
                    if not decoder.eof:
                        if block := decoder.decompress(rest, BLOCK_BYTES):
                            yield block
                        rest = decoder.unconsumed_tail or decoder.unused_data
                        continue
                    # gzip(1) allows zeros after a member, and further members.
                    self.one_member = False
                    if rest := rest.lstrip(b"\0"):
                        decoder = zlib.decompressobj(_GZIP_WINDOW_BITS)
            if not decoder.eof:
                raise zlib.error("the stream ends early")
        except zlib.error as error:
            self.damage = f"damaged gzip stream: {error}"
            self.one_member = False
            unread = len(rest) + sum(map(len, chunks))
            read = max(1, self.size_bytes - unread)
            self.lost_bytes = unread * max(read, self.content_bytes) // read
