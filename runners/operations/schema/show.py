"""Operation: lists the reviewed schema's features, without sensitive values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.operations.pipeline_request import PipelineRequest
from schemas.loader import load
from schemas.show_schema import FeatureRow, show_schema


@dataclass(frozen=True)
class ShownSchema:
    """A schema's file, and a row for each feature."""

    pipeline: str
    path: Path
    rows: Sequence[FeatureRow]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "schema_version": 1,
            "pipeline": self.pipeline,
            "schema": str(self.path),
            "features": [row.to_dict() for row in self.rows],
        }


def show(request: PipelineRequest) -> ShownSchema:
    """Returns the reviewed schema; raises ``UsageError`` if it cannot be read."""
    config = request.load_config()
    rows = show_schema(load(config.schema_path), config.sensitive)
    return ShownSchema(config.name, config.schema_path, rows)
