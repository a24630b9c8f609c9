"""Operation: compiles a pipeline for Vertex AI or Kubeflow Pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.config.cloud import Cloud
from pipeline.config.config import Config
from runners.cloud.compile_spec import CompiledSpec, compile_checked
from runners.operations.pipeline_request import PipelineRequest

EngineName = Literal["vertex", "kubeflow"]


@dataclass(frozen=True, kw_only=True)
class CompileRequest(PipelineRequest):
    """Request to compile a pipeline.

    Attributes:
      engine: instead of ``cloud.engine``.
      scheduled: for a schedule, whose first task selects the spans.
    """

    engine: EngineName | None = None
    scheduled: bool = False


def compile_pipeline(request: CompileRequest) -> CompiledSpec:
    """Compiles a pipeline that the service can run, with the linter's warnings.

    Takes as long as importing TFX does, unless the config alone is refused.

    Raises:
      LintError: the service would refuse it, or a run there would fail.
      UsageError: the config is invalid, or cannot be compiled for the engine.
      NodeError: the process failed otherwise.
    """
    config = with_engine(request.validated_config(), request.engine)
    return compile_checked(config, scheduled=request.scheduled)


def with_engine(config: Config, engine: EngineName | None) -> Config:
    """Returns the config with another ``cloud.engine``."""
    if engine is None:
        return config
    cloud = (config.cloud or Cloud()).model_copy(update={"engine": engine})
    return config.model_copy(update={"cloud": cloud})
