"""Operation: writes a sample data set into a project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config.load import load_config
from sample_data import catalog


@dataclass(frozen=True)
class MadeData:
    """A data set on disk; ``records`` is by split."""

    name: str
    directory: Path
    records: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        facts = {"name": self.name, "path": str(self.directory)}
        return {"schema_version": 1, **facts, "records": self.records}


def make_data(name: str) -> MadeData:
    """Writes the data set ``name`` into data/, unless it is there and intact.

    Raises:
      UsageError: there is no such data set, or no config of that name.
    """
    catalog.get(name)
    directory = load_config(name).root / "data" / name
    records: dict[str, int] = {}
    for shard in catalog.make(name, directory).shards:
        records[shard.split] = records.get(shard.split, 0) + shard.records
    return MadeData(name, directory, records)
