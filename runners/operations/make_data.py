"""Operation: writes a data set into a project, as TFRecords."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config.find import find_config
from sample_data import catalog
from sample_data.data_set import Source
from sluice.errors import UsageError
from sluice.project import current_project, find_root


@dataclass(frozen=True)
class MadeData:
    """A data set on disk, with the number of records by split."""

    name: str
    directory: Path
    records: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        facts = {"name": self.name, "path": str(self.directory)}
        return {"schema_version": 1, **facts, "records": self.records}


def make_data(
    name: str,
    *,
    source: str | None = None,
    label: str | None = None,
    directory: str | None = None,
    seed: int = catalog.DEFAULT_SEED,
    report: Callable[[str], None] = lambda line: None,
) -> MadeData:
    """Writes the data set ``name`` into data/, unless it is there and intact.

    Args:
      name: of the data set.
      source: the directory or file with the data set's own files; None for one that
        ships with a package, is there already, or is downloaded.
      label: of a CSV file, the column that is the label.
      directory: where to write; None for data/NAME of the project.
      seed: decides the splits and the order of the records.
      report: called with lines of progress.

    Raises:
      UsageError: there is no such data set, or its files cannot be had.
      DataError: its files are damaged.
    """
    data_set = catalog.get(name)
    files = Source(Path(source), label) if source is not None else None
    if files and not files.path.exists():
        raise UsageError(
            "there is nothing at this path",
            where=files.path,
            expected=data_set.expected_files or None,
            hint=f"sluice data make {name} --from DIR",
        )
    target = Path(directory) if directory else _root(name) / "data" / name
    records: dict[str, int] = {}
    made = catalog.make(name, target, source=files, seed=seed, report=report)
    for shard in made.shards:
        records[shard.split] = records.get(shard.split, 0) + shard.records
    return MadeData(name, target, records)


def _root(name: str) -> Path:
    """Returns the project that has a config of this name, or else the current one."""
    try:
        return find_root(find_config(name, Path.cwd()).parent)
    except UsageError:
        return current_project(Path.cwd())
