"""Operation: compiles a pipeline; TFX is imported, in this process.

For a service the result is KFP's pipeline job as a dictionary, always of pipeline spec
2.1: in 2.0 a span that TFX's driver resolves never reaches the executor. Nothing remote
is read or written; who submits the job copies ``uploads`` first.
"""

from __future__ import annotations

from collections.abc import Callable

from pipeline.checks.before_run import check_before_run, check_with_tensorflow
from pipeline.checks.check_service import cloud_of
from pipeline.config.config import Config
from pipeline.graph.locations import local_locations
from reports.draw_graph import GraphNode
from runners.cloud.image import check_modules
from runners.cloud.job_inputs import CompiledJob
from runners.local.node_failure import as_error, explain_failure
from runners.operations.find_run import workspace_of
from sluice.compat import hidden_native_logs
from sluice.node_kinds import GATES


def compile_for_service(
    config: Config, on_warning: Callable[[str], None]
) -> CompiledJob:
    """Checks a config, and compiles its pipeline for the service that it names.

    Raises:
      UsageError: the config is wrong, or the pipeline cannot be compiled.
      NodeError: the user's code failed otherwise.
    """
    scheduled = cloud_of(config).selects_spans
    config = check_before_run(config, in_service=True, on_warning=on_warning)
    return compile_checked(config, scheduled=scheduled)


def compile_checked(config: Config, *, scheduled: bool = False) -> CompiledJob:
    """Compiles a pipeline for the engine of its ``cloud`` section.

    Args:
      config: see ``check_before_run``.
      scheduled: for a schedule: the first task selects the spans when it runs, and the
        others are skipped if there is nothing new. Otherwise the spans are a parameter.

    Raises:
      ConfigError: the image would lack code.
      UsageError: the pipeline cannot be created, or not be compiled.
      NodeError: the user's code failed otherwise.
    """
    check_modules(config)
    try:
        with hidden_native_logs():
            check_with_tensorflow(config)
            from runners.cloud.compile_job import compile_pipeline

            return compile_pipeline(config, scheduled=scheduled)
    except Exception as error:
        raise as_error(explain_failure("the pipeline", error)) from error


def compile_graph(config: Config) -> list[GraphNode]:
    """Compiles a pipeline, which imports TFX, and returns its nodes.

    Raises:
      UsageError: the config is invalid.
    """
    config = check_before_run(config)
    with hidden_native_logs():
        from tfx.dsl.compiler.compiler import Compiler

        from pipeline.graph.create_pipeline import create_pipeline
        from runners.local.prepare import nodes_of

        places = local_locations(config, workspace_of(config))
        nodes = nodes_of(Compiler().compile(create_pipeline(config, places)))
    return [GraphNode(x.id, x.kind, tuple(x.upstream), x.kind in GATES) for x in nodes]
