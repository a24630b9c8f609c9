"""Manifest of a data set's directory, to detect changes.

``manifest.json`` is beside the shards. TFRecord files have no end mark, so only a
manifest shows that records, or whole files, are missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sample_data.data_set import Split
from sluice.errors import DataError
from sluice.storage import atomic, digest
from sluice.tfrecords import tfrecord

MANIFEST_FILE = "manifest.json"
FORMAT = 1


@dataclass(frozen=True)
class Shard:
    """One file.

    Attributes:
      split: of its records.
      sha256: digest of the file; of a compressed file it depends on the zlib version.
      records_sha256: digest of the records, each after its length (8 bytes,
        little-endian); the same on every machine.
    """

    name: str
    split: str
    records: int
    size_bytes: int
    sha256: str
    records_sha256: str


@dataclass(frozen=True)
class Manifest:
    """Contents of a directory.

    Attributes:
      version: of its records.
      seed: of the shuffle.
      source_sha256: digest of the original files; empty if a package contains them.
      class_names: of the labels 0, 1, ...
    """

    data_set: str
    version: int
    seed: int
    shards: tuple[Shard, ...]
    source_sha256: str = ""
    class_names: tuple[str, ...] = ()

    def records(self, split: str) -> int:
        """Returns the number of records of a split."""
        return sum(shard.records for shard in self.shards if shard.split == split)

    def is_complete(self, splits: Sequence[Split]) -> bool:
        """Whether the shards of every split are complete, by their names."""
        for split in splits:
            names = [shard.name for shard in self.shards if shard.split == split.name]
            counted = (
                f"{index:05d}-of-{len(names):05d}" for index in range(len(names))
            )
            expected = [f"{split.name}-{suffix}" for suffix in counted]
            if not names or [name.partition(".")[0] for name in names] != expected:
                return False
        return True

    def save(self, directory: Path) -> None:
        """Writes ``manifest.json``."""
        atomic.write_json(directory / MANIFEST_FILE, {"format": FORMAT} | asdict(self))

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """Reads ``manifest.json``.

        Raises:
          DataError: it is missing, or not a manifest of this format.
          OSError: it cannot be read.
        """
        path = directory / MANIFEST_FILE
        try:
            fields = json.loads(path.read_bytes())
            if not isinstance(fields, dict):
                raise TypeError("not a JSON object")
            if (found := fields.pop("format")) != FORMAT:
                raise ValueError(f"format {found}")
            shards = tuple(Shard(**shard) for shard in fields.pop("shards"))
            names = tuple(fields.pop("class_names", ()))
            return cls(shards=shards, class_names=names, **fields)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _unreadable(path, "no such file") from error
        except KeyError as error:
            raise _unreadable(path, f"no key {error}") from error
        except (ValueError, TypeError) as error:
            raise _unreadable(path, str(error)) from error

    def check(self, directory: Path) -> None:
        """Compares a directory with the manifest, byte by byte.

        Raises:
          DataError: a file is missing, changed or not listed.
          OSError: a file cannot be read.
        """
        for shard in self.shards:
            self._check_shard(directory / shard.name, shard)
        prefixes = tuple({f"{shard.split}-" for shard in self.shards})
        listed = {shard.name for shard in self.shards}
        for path in sorted(directory.iterdir()):
            if path.name.startswith(prefixes) and path.name not in listed:
                raise DataError(
                    "this file is not in the manifest, but a split's pattern matches "
                    "it",
                    where=path,
                    expected=f"only the {len(listed)} files of {MANIFEST_FILE}",
                    hint=f"Move it away, or: sluice data make {self.data_set}",
                )

    def _check_shard(self, path: Path, shard: Shard) -> None:
        hint = f"sluice data make {self.data_set}"
        if not path.is_file():
            raise DataError(
                f"a file of the data set {self.data_set} is missing",
                where=path,
                expected=f"{shard.records:,} records, {shard.size_bytes:,} bytes",
                hint=hint,
            )
        found = digest.of_file(path)
        if found == shard.sha256:
            return
        records = tfrecord.verify(path)  # Raises a more specific error if it can.
        raise DataError(
            f"a file of the data set {self.data_set} has changed",
            where=path,
            expected=f"{shard.records:,} records, SHA-256 {shard.sha256}",
            actual=f"{records:,} records, SHA-256 {found}",
            hint=hint,
        )


def _unreadable(path: Path, actual: str) -> DataError:
    return DataError(
        "this directory has no readable manifest",
        where=path,
        expected=f"a manifest of format {FORMAT}",
        actual=actual,
        hint="sluice data make NAME",
    )
