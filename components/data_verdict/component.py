"""The ``DataVerdict`` node: judges the data; always succeeds."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components import artifacts
from components.data_verdict import driver, executor
from components.data_verdict.policy import Settings

_OPTIONAL_TEXT = component_spec.ExecutionParameter(type=str, optional=True)


class DataVerdictSpec(component_spec.ComponentSpec):
    """Statistics, anomalies, schema and the ingestion's report in, a verdict out."""

    PARAMETERS = {
        "settings": component_spec.ExecutionParameter(type=str),
        "baseline_store": component_spec.ExecutionParameter(type=str),
        "override": _OPTIONAL_TEXT,
        # Set by the driver; see there.
        "baseline": _OPTIONAL_TEXT,
    }
    INPUTS = {
        "statistics": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleStatistics
        ),
        "anomalies": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleAnomalies
        ),
        "schema": component_spec.ChannelParameter(type=standard_artifacts.Schema),
        "quarantine": component_spec.ChannelParameter(type=artifacts.Quarantine),
        "serving_statistics": component_spec.ChannelParameter(
            type=standard_artifacts.ExampleStatistics, optional=True
        ),
        "serving_quarantine": component_spec.ChannelParameter(
            type=artifacts.Quarantine, optional=True
        ),
    }
    OUTPUTS = {
        "verdict": component_spec.ChannelParameter(type=artifacts.DataVerdict),
    }


class DataVerdict(base_component.BaseComponent):
    """Decides whether the data may be trained on, and publishes the verdict.

    TFX deletes the outputs of a failed node, so the node that fails cannot be the one
    that publishes the reasons: ``DataGate`` fails.

    Example::

        verdict = DataVerdict(
            statistics=statistics_gen.outputs["statistics"],
            anomalies=example_validator.outputs["anomalies"],
            schema=schema_gen.outputs["schema"],
            quarantine=tfrecord_gen.outputs["quarantine"],
            settings=Settings(
                splits=("train", "eval", "test"),
                policy=Policy(default="fail"),
            ),
            baseline_store="/srv/trips/state/accepted",
        )
    """

    SPEC_CLASS = DataVerdictSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        *,
        settings: Settings,
        baseline_store: str,
        override: str | None = None,
        **inputs: types.BaseChannel,
    ) -> None:
        """Declares the node.

        Args:
          settings: splits, policy and sensitive features.
          baseline_store: statistics of accepted data, a directory or an address.
          override: a person's reason to accept the data anyway.
          **inputs: the artifacts, as the spec names them; those of serving requests are
            optional.
        """
        super().__init__(
            DataVerdictSpec(
                settings=settings.model_dump_json(),
                baseline_store=baseline_store,
                override=override,
                verdict=types.Channel(type=artifacts.DataVerdict),
                **inputs,
            )
        )
