"""Operation: compares the reviewed schema of a pipeline with data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from pipeline.config.expectations import expectations
from runners.operations.find_run import Warn, ignore
from runners.operations.schema.source import (
    SchemaRequest,
    Source,
    from_data,
    from_run,
)
from schemas.diff.diff_schema import Diff, diff_schema
from schemas.edit.edit_schema import read_schema_text
from schemas.loader import load
from sluice.errors import DataError, UsageError


@dataclass(frozen=True)
class Compared:
    """The differences between a schema's file and data."""

    request: SchemaRequest
    config: Config
    path: Path
    text: str
    source: Source
    diff: Diff

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        changes = [change.to_dict() for change in self.diff.changes]
        return {**self.head(), "changes": changes, "notes": list(self.diff.notes)}

    def head(self) -> dict[str, Any]:
        """Returns the JSON form of the two sides."""
        return {
            "schema_version": 1,
            "pipeline": self.config.name,
            "schema": str(self.path),
            "source": {**self.source.facts, "splits": self.source.observed.splits},
        }


def diff(request: SchemaRequest, warn: Warn = ignore) -> Compared:
    """Returns the differences between the reviewed schema and the requested data.

    Raises:
      UsageError: the schema is invalid, or there is no such data.
      DataError: there are no records.
      WorkspaceError: the run's statistics are damaged.
    """
    config = request.load_config()
    if request.data and request.run_id:
        raise UsageError("--run and --data cannot be combined", hint="use one of them")
    path = config.schema_path
    text = read_schema_text(path) if path.is_file() else ""
    reviewed = load(path)
    source = from_data(config) if request.data else from_run(request, warn)
    if not source.observed.records:
        raise DataError(
            "there are no records to compare the schema with",
            where=source.text,
            hint=request.run_command(),
        )
    found = diff_schema(reviewed, source.observed, expectations(config))
    return Compared(request, config, path, text, source, found)
