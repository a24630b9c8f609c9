"""The ``DataGate`` node: fails if the data verdict has not passed; no outputs."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor, executor_spec
from tfx.types import artifact_utils
from tfx.types.component_spec import ChannelParameter, ComponentSpec

from components import artifacts
from components.artifacts import Artifacts
from components.component import Component
from sluice.errors import GateError
from sluice.record.verdict import Verdict


class Executor(base_executor.BaseExecutor):
    """Raises an error with the failed rows of the verdict."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        verdict = Verdict.load(artifact_utils.get_single_uri(input_dict["verdict"]))
        pipeline = self._context.pipeline_info if self._context else None
        stop_unless_passed(verdict, pipeline.id if pipeline else "NAME")


def stop_unless_passed(verdict: Verdict, pipeline: str) -> None:
    """Raises GateError with the failed rows unless the verdict has passed.

    Args:
      verdict: on the data.
      pipeline: its name, for the hint.
    """
    if verdict.passed:
        return
    count = len(verdict.failures)
    ways_out = [
        f"{remedy}: sluice {command} {pipeline}" if command else remedy
        for remedy, command in verdict.remedies
    ]
    raise GateError(
        f"the data gate has not passed: {count} "
        f"{'check' if count == 1 else 'checks'} failed; nothing was trained",
        examples=verdict.causes,
        hint=f"{'; '.join([*ways_out, 'then run again'])}. "
        'Or let the data pass once, with a reason: --accept-data "..."',
    )


class DataGateSpec(ComponentSpec):
    """A verdict in, nothing out."""

    PARAMETERS: dict = {}
    INPUTS = {
        "verdict": ChannelParameter(type=artifacts.DataVerdict),
    }
    OUTPUTS: dict = {}


class DataGate(Component):
    """Fails if the data verdict has not passed, so that nodes behind it do not run.

    It has no outputs: nodes depend on it by ``add_upstream_node``.

    Example::

        gate = DataGate(verdict=verdict.outputs["verdict"])
        transform.add_upstream_node(gate)
    """

    SPEC_CLASS = DataGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
