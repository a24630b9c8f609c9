"""Operation: validates a config with schema and code, without TensorFlow."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pipeline.graph.choose_spans import choose_data
from pipeline.graph.validate_graph import validate_pipeline
from runners.operations.pipeline_request import PipelineRequest
from sluice.errors import UsageError
from sluice.project import activate


@dataclass(frozen=True)
class Validated:
    """A config that was found to be valid.

    Attributes:
      pipeline: its name.
      file: its path.
      warnings: what may still make a run fail, such as missing data.
    """

    pipeline: str
    file: str
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"schema_version": 1, **asdict(self)}


def validate(request: PipelineRequest) -> Validated:
    """Checks a config with its schema and code.

    Raises:
      UsageError: the config does not exist or is invalid.
    """
    config = request.load_config()
    activate(config.root)
    warnings = list(validate_pipeline(config).warnings)
    try:
        choose_data(config)
    except UsageError as error:
        warnings.append(str(error))
    return Validated(config.name, str(config.origin.file), tuple(warnings))
