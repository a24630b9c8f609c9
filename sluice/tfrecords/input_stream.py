"""Reads the bytes of an input file once, decompressing gzip and zlib.

The compression is detected from the content, not the name. A damaged stream is read up
to the first bad byte, and the loss is estimated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import google_crc32c

from sluice.storage.storage import storage_for
from sluice.storage.storage_errors import explain_unreadable
from sluice.tfrecords.frame_encoding import HEADER, length_of

# Fits into a level 2 cache with its output: a fifth faster than 512 KiB.
CHUNK_BYTES = 1 << 17
BLOCK_BYTES = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_BITS = {"gzip": 31, "zlib": 15}
_TRAILER_BYTES = 8


@dataclass(frozen=True)
class Damage:
    """Why a compressed stream could not be read to its end.

    Attributes:
        reason: the error.
        lost_bytes: decompressed size of the rest, estimated by the ratio so far.
    """

    reason: str
    lost_bytes: int


class InputStream:
    """A file that is read once, front to end.

    Args:
      path: the file, local or with "://".
      tees: each gets every chunk of the file's own bytes.
      generation: that must be read; None for the current one.

    Attributes:
      head: the first 12 bytes of the file, compressed or not; fewer if it is shorter.
      compression: "none", "gzip" or "zlib".
      damage: set at the end where the compressed stream is damaged.
      one_member: at the end: whether the stream is one gzip member and nothing else.
      size_bytes: the file's bytes so far.
      content_bytes: decompressed bytes so far.
      content_crc32c: their CRC-32C.
    """

    def __init__(
        self,
        path: str,
        tees: Sequence[Callable[[bytes], object]] = (),
        generation: str | None = None,
    ) -> None:
        self.path = path
        self.damage: Damage | None = None
        self.one_member = False
        self.size_bytes = 0
        self.content_bytes = 0
        self.content_crc32c = 0
        self._tees = tees
        with explain_unreadable(path):
            self._file: IO[bytes] = storage_for(path).open(
                path, "rb", generation=generation
            )
            self._first = self._file.read(CHUNK_BYTES)
        self.head = self._first[: HEADER.size]
        self.compression = _compression(self.head)

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
        if self.compression != "none":
            chunks = self._inflate(chunks)
        for block in chunks:
            self.content_bytes += len(block)
            self.content_crc32c = google_crc32c.extend(self.content_crc32c, block)
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
        window_bits = _WINDOW_BITS[self.compression]
        decoder = zlib.decompressobj(window_bits)
        members, padded = 1, False
        for chunk in chunks:
            while chunk:
                if decoder.eof:
                    # gzip(1) allows zeros after a member, and further members.
                    padded |= chunk.startswith(b"\0")
                    if not (chunk := chunk.lstrip(b"\0")):
                        break
                    decoder = zlib.decompressobj(window_bits)
                    members += 1
                before = decoder.copy()
                try:
                    block = decoder.decompress(chunk, BLOCK_BYTES)
                except zlib.error as error:
                    rest = yield from _salvage(before, chunk)
                    self._set_damage(str(error), rest + sum(map(len, chunks)))
                    return
                if block:
                    yield block
                chunk = decoder.unconsumed_tail or decoder.unused_data
        if not decoder.eof:
            if block := decoder.flush():
                yield block
            self._set_damage("the stream ends early", 0)
        self.one_member = self.damage is None and members == 1 and not padded

    def _set_damage(self, reason: str, rest: int) -> None:
        used = max(1, self.size_bytes - rest)
        lost = max(0, rest - _TRAILER_BYTES)
        text = f"damaged {self.compression} stream: {reason}"
        if rest:
            text += f"; {rest:,} of {self.size_bytes:,} compressed bytes are not read"
        self.damage = Damage(text, lost * max(used, self.content_bytes) // used)


def _compression(head: bytes) -> str:
    # A TFRecord may begin like gzip (a first length of 35,615) or zlib: the checksum of
    # the length decides.
    if length_of(head) is not None:
        return "none"
    if head.startswith(_GZIP_MAGIC):
        return "gzip"
    # RFC 1950: deflate, a window of at most 32 KiB, a check that 31 divides.
    if (
        len(head) >= 2
        and head[0] & 0x8F == 8
        and not int.from_bytes(head[:2], "big") % 31
    ):
        return "zlib"
    return "none"


def _salvage(decoder: Any, data: bytes) -> Generator[bytes, None, int]:
    """Yields a chunk's content before its first bad byte; returns the bytes left."""
    for step in (4096, 64, 1):
        while data:
            attempt = decoder.copy()
            try:
                block = attempt.decompress(data[:step])
            except zlib.error:
                break
            if block:
                yield block
            decoder, data = attempt, data[step:]
    return len(data)
