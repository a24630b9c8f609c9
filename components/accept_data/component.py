"""The ``AcceptData`` node: adds accepted data to the baseline store."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components import artifacts
from components.accept_data import executor


class AcceptDataSpec(component_spec.ComponentSpec):
    """Statistics, the ingestion's report and a verdict in, nothing out."""

    PARAMETERS = {"baseline_store": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "statistics": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleStatistics
        ),
        "quarantine": component_spec.ChannelParameter(type=artifacts.Quarantine),
        "verdict": component_spec.ChannelParameter(type=artifacts.DataVerdict),
    }
    OUTPUTS: dict = {}


class AcceptData(base_component.BaseComponent):
    """Stores the statistics of accepted data as the baseline of later data.

    It runs after ``DataGate``, so rejected data never becomes a baseline.

    Example::

        accept_data = AcceptData(
            statistics=statistics_gen.outputs["statistics"],
            quarantine=tfrecord_gen.outputs["quarantine"],
            verdict=data_verdict.outputs["verdict"],
            baseline_store="/srv/trips/state/accepted",
        )
        accept_data.add_upstream_node(data_gate)
    """

    SPEC_CLASS = AcceptDataSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, *, baseline_store: str, **inputs: types.BaseChannel) -> None:
        """Declares the node.

        Args:
          baseline_store: a directory or an address such as ``gs://bucket/accepted``.
          **inputs: the artifacts, as the spec names them.
        """
        super().__init__(AcceptDataSpec(baseline_store=baseline_store, **inputs))
