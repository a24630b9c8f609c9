"""Operation: infers a schema from the current data; the reviewed one is unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.scaffold.infer_schema import infer_schema
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.schema.source import summary_of
from schemas.edit.schema_text import plain_text, without_values
from schemas.loader import feature_names
from sluice.errors import DataError, UsageError
from sluice.storage.output_path import resolve_output_path, write_output


@dataclass(frozen=True, kw_only=True)
class InferRequest(PipelineRequest):
    """The data to infer a schema from.

    Attributes:
      examples: a pattern of TFRecord files; None for the config's.
      output: a new file to write the schema to; None for no file.
    """

    examples: str | None = None
    output: str | None = None


@dataclass(frozen=True)
class Inferred:
    """An inferred schema and its data.

    ``counted`` describes the records, for people; ``missing_label`` is the label's name
    if no record has it.
    """

    pipeline: str
    text: str
    features: int
    records: int
    counted: str
    missing_label: str | None
    output: str | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "schema_version": 1,
            "pipeline": self.pipeline,
            "records": self.records,
            "text": self.text,
            "path": self.output,
        }


def infer(request: InferRequest) -> Inferred:
    """Reads all records and returns a schema without values of sensitive features.

    Raises:
      UsageError: there are no such files, or the output exists or cannot be written.
      DataError: there are no records, or no span is complete.
    """
    config = request.load_config()
    output = request.output
    path = resolve_output_path(output, Path.cwd(), "--output") if output else None
    summary, counted = summary_of(config, request.examples)
    label = config.label.feature
    found = infer_schema(summary, label if label in summary.features else None)
    found = without_values(found, config.sensitive)
    if not found.feature:
        raise DataError(
            "there are no records to infer a schema from",
            expected="at least one record with a value",
            actual=counted,
        )
    text = plain_text(found)
    if path is not None:
        if path.exists():
            raise UsageError(
                "the file exists; nothing was written",
                where=path,
                hint="choose another file with -o; to change a reviewed schema, use "
                "sluice schema accept",
            )
        write_output(path, text, "schema")
    return Inferred(
        pipeline=config.name,
        text=text,
        features=len(found.feature),
        records=summary.records,
        counted=counted,
        missing_label=None if label in feature_names(found) else label,
        output=output,
    )
