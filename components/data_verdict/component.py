"""The ``DataVerdict`` node: always succeeds, and says whether the data may be used."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components import artifacts
from components.data_verdict import executor


class DataVerdictSpec(component_spec.ComponentSpec):
    """Statistics and anomalies in, a verdict out."""

    PARAMETERS = {"splits": component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "statistics": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleStatistics
        ),
        "anomalies": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleAnomalies
        ),
    }
    OUTPUTS = {
        "verdict": component_spec.ChannelParameter(type=artifacts.DataVerdict),
    }


class DataVerdict(base_component.BaseComponent):
    """Judges the data and publishes the verdict, good or bad.

    TFX deletes what a failed node wrote, so a node that stops the run could not say
    why. This one explains; ``DataGate`` stops.

    Example::

        verdict = DataVerdict(
            statistics=statistics_gen.outputs["statistics"],
            anomalies=example_validator.outputs["anomalies"],
            splits=["train", "eval", "test"],
        )
    """

    SPEC_CLASS = DataVerdictSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        statistics: types.BaseChannel,
        anomalies: types.BaseChannel,
        splits: Sequence[str],
    ) -> None:
        """Declares the node.

        Args:
          statistics: output of StatisticsGen.
          anomalies: output of ExampleValidator.
          splits: the splits that must not be empty.
        """
        super().__init__(
            DataVerdictSpec(
                statistics=statistics,
                anomalies=anomalies,
                splits=json.dumps(list(splits)),
                verdict=types.Channel(type=artifacts.DataVerdict),
            )
        )
