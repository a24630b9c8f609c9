"""The ``DataVerdict`` node: judges the data; always succeeds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components import artifacts
from components.data_verdict import driver, executor
from components.data_verdict.policy import Policy
from components.tfrecord_gen.checking.hash_splits import HashSplits

_TEXT = component_spec.ExecutionParameter(type=str)
_OPTIONAL_TEXT = component_spec.ExecutionParameter(type=str, optional=True)


class DataVerdictSpec(component_spec.ComponentSpec):
    """Statistics, anomalies, schema and the ingestion's report in, a verdict out."""

    PARAMETERS = {
        "splits": _TEXT,
        "policy": _TEXT,
        "baseline_store": _TEXT,
        "sensitive": _TEXT,
        "hash_splits": _OPTIONAL_TEXT,
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
            splits=["train", "eval", "test"],
            policy=Policy(default="fail"),
            baseline_store="/srv/trips/state/accepted",
        )
    """

    SPEC_CLASS = DataVerdictSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        *,
        statistics: types.BaseChannel,
        anomalies: types.BaseChannel,
        schema: types.BaseChannel,
        quarantine: types.BaseChannel,
        splits: Sequence[str],
        policy: Policy,
        baseline_store: str,
        serving_statistics: types.BaseChannel | None = None,
        serving_quarantine: types.BaseChannel | None = None,
        sensitive: Sequence[str] = (),
        hash_splits: HashSplits | None = None,
        override: str | None = None,
    ) -> None:
        """Declares the node.

        Args:
          statistics: output of StatisticsGen.
          anomalies: output of ExampleValidator.
          schema: the reviewed schema.
          quarantine: of the ingestion; its report names the source files.
          splits: the splits that the pipeline declares, in order.
          policy: the config's ``validate``.
          baseline_store: statistics of accepted data, a directory or an address.
          serving_statistics: of serving requests.
          serving_quarantine: of the ingestion of those examples.
          sensitive: features whose values are never shown.
          hash_splits: how records are divided into splits; None if files are.
          override: a person's reason to accept the data anyway.
        """
        super().__init__(
            DataVerdictSpec(
                statistics=statistics,
                anomalies=anomalies,
                schema=schema,
                quarantine=quarantine,
                serving_statistics=serving_statistics,
                serving_quarantine=serving_quarantine,
                splits=json.dumps(list(splits)),
                policy=policy.to_json(),
                baseline_store=baseline_store,
                sensitive=json.dumps(sorted(sensitive)),
                hash_splits=hash_splits.model_dump_json() if hash_splits else None,
                override=override,
                verdict=types.Channel(type=artifacts.DataVerdict),
            )
        )
