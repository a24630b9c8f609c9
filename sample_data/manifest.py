"""Manifest of a data set's directory, to detect changes.

``manifest.json`` is beside the shards. TFRecord files have no end mark, so only a
manifest shows that records, or whole files, are missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from sluice.config_section import Section
from sluice.errors import DataError
from sluice.storage import atomic, digest
from sluice.tfrecords import tfrecord

MANIFEST_FILE = "manifest.json"


class Shard(Section):
    """One file of records."""

    name: str
    split: str
    records: int
    size_bytes: int
    sha256: str
    """Digest of the file; of a compressed file it depends on the zlib version."""
    records_sha256: str
    """Digest of the records, each after its length (8 bytes, little-endian)."""


class Manifest(Section):
    """Contents of a directory."""

    format: Literal[1] = 1
    data_set: str
    version: int
    """Of its records."""
    seed: int
    """Of the shuffle."""
    shards: tuple[Shard, ...]
    class_names: tuple[str, ...] = ()
    """Of the labels 0, 1, ..."""

    def records(self, split: str) -> int:
        """Returns the number of records of a split."""
        return sum(shard.records for shard in self.shards if shard.split == split)

    def save(self, directory: Path) -> None:
        """Writes ``manifest.json``."""
        atomic.write_json(directory / MANIFEST_FILE, self.model_dump())

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """Reads ``manifest.json``.

        Raises:
          DataError: it is missing, or not a manifest of this format.
        """
        path = directory / MANIFEST_FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            first = str(error).partition("\n")[0]
            raise DataError(
                f"this directory has no readable manifest: {first}",
                where=path,
                hint="sluice data make NAME",
            ) from error

    def check(self, directory: Path) -> None:
        """Compares a directory with the manifest, byte by byte.

        Raises:
          DataError: a file is missing, changed or not listed.
          OSError: a file cannot be read.
        """
        hint = f"sluice data make {self.data_set}"
        for shard in self.shards:
            path = directory / shard.name
            if path.is_file() and digest.of_file(path) == shard.sha256:
                continue
            what = "is missing"
            if path.is_file():
                records = tfrecord.verify(path)  # Raises a more specific error.
                what = f"has changed: {records:,} records, not {shard.records:,}"
            what = f"a file of the data set {self.data_set} {what}"
            raise DataError(what, where=path, hint=hint)
        prefixes = tuple({f"{shard.split}-" for shard in self.shards})
        listed = {shard.name for shard in self.shards}
        for path in sorted(directory.iterdir()):
            if path.name.startswith(prefixes) and path.name not in listed:
                what = "this file is not in the manifest, but a split's pattern has it"
                raise DataError(what, where=path, hint=f"move it away, or: {hint}")
