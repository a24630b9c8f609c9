"""Operation: validates a config with schema and code, without TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.graph.choose_spans import choose_data
from pipeline.graph.validate_graph import validate_pipeline
from runners.operations.pipeline_request import PipelineRequest
from sluice.errors import UsageError
from sluice.project import activate


@dataclass(frozen=True)
class Validated:
    """A config that holds.

    Attributes:
      file: where it is.
      warnings: what may keep a run from what it is for; missing data among them, which
        may arrive yet.
    """

    file: str
    warnings: tuple[str, ...]


def validate(request: PipelineRequest) -> Validated:
    """Checks a config.

    Raises:
      UsageError: it is not to be found or is wrong.
    """
    config = request.load_config()
    activate(config.root)
    warnings = list(validate_pipeline(config).warnings)
    try:
        choose_data(config)
    except UsageError as error:
        warnings.append(str(error))
    return Validated(str(config.origin.file), tuple(warnings))
