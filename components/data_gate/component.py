"""The ``DataGate`` node: fails if the data verdict has not passed; no outputs."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec

from components import artifacts
from components.data_gate import executor


class DataGateSpec(component_spec.ComponentSpec):
    """A verdict in, nothing out."""

    PARAMETERS: dict = {}
    INPUTS = {
        "verdict": component_spec.ChannelParameter(type=artifacts.DataVerdict),
    }
    OUTPUTS: dict = {}


class DataGate(base_component.BaseComponent):
    """Fails if the data verdict has not passed, so that nodes behind it do not run.

    It has no outputs: nodes depend on it by ``add_upstream_node``.

    Example::

        gate = DataGate(verdict=verdict.outputs["verdict"])
        transform.add_upstream_node(gate)
    """

    SPEC_CLASS = DataGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, verdict: types.BaseChannel) -> None:
        """Declares the node.

        Args:
          verdict: output of DataVerdict.
        """
        super().__init__(DataGateSpec(verdict=verdict))
