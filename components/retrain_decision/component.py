"""The ``RetrainGate`` node: publishes whether there is a reason to train.

Its driver puts the time of the decision into an exec property, so the node is never
cached: the served version is no input of the node, and its age changes. Cloud engines
run no custom drivers: there the node must not be cached.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import (
    base_driver,
    base_executor,
    executor_spec,
)
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.proto.orchestration import driver_output_pb2
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components import artifacts
from components.artifacts import Artifacts, publish_verdict
from components.component import Component
from components.data_baselines import entry_before, read_entry
from components.model_verdict.read_evaluation import read_evaluation
from components.retrain_decision.decide import Served, decide
from components.retrain_decision.settings import Retrain
from components.tfrecord_gen.ingestion_report import Report
from schemas.data_statistics import Statistics
from serving.model_store import store_at
from sluice.clock import utc_now
from sluice.model_facts import read_facts
from sluice.node_kinds import METRICS, PREDICTIONS, RETRAIN
from sluice.splits import SERVING, split_statistics_path
from sluice.storage.storage import storage_for


class Executor(base_executor.BaseExecutor):
    """Executor of ``RetrainGate``; it succeeds whatever the decision is."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        settings = Retrain.model_validate_json(exec_properties["settings"])
        report = Report.load(artifact_utils.get_single_uri(input_dict["quarantine"]))
        uri = artifact_utils.get_single_uri(input_dict["statistics"])
        statistics = _statistics(uri, "train")
        requests = None
        if recorded := input_dict.get("requests"):
            uri = artifact_utils.get_single_uri(recorded)
            requests = _statistics(uri, SERVING)
        served = _served(
            exec_properties["serving_dir"],
            exec_properties["baseline_store"],
            exec_properties.get("recorded"),
            json.loads(exec_properties["sensitive"]),
        )
        classes = tuple(json.loads(exec_properties["classes"]))
        if served and (evaluations := input_dict.get("evaluation")):
            uri = artifact_utils.get_single_uri(evaluations)
            served = replace(served, newest=read_evaluation(uri, "", classes))
        # Cloud engines run no custom drivers.
        now = datetime.fromisoformat(exec_properties.get("at") or utc_now())
        verdict = decide(settings, report, statistics, served, now, requests)
        published = artifact_utils.get_single_instance(output_dict["decision"])
        publish_verdict(verdict, published)
        published.set_int_custom_property(RETRAIN, int(not verdict.skips))


def _statistics(uri: str, split: str) -> Statistics:
    path = split_statistics_path(uri, split)
    return Statistics.FromString(storage_for(path).read(path))


def _served(
    serving_dir: str,
    baseline_store: str,
    requests: str | None,
    sensitive: Sequence[str],
) -> Served | None:
    """Returns the newest version, and the data that was accepted last before it."""
    newest = store_at(serving_dir).newest()
    if newest is None or newest.first_published_at is None:
        return None
    pushed_at = datetime.fromisoformat(newest.first_published_at)
    folder = entry_before(baseline_store, pushed_at)
    entry, statistics = read_entry(folder) if folder else (None, {})
    metrics = newest.facts.get(METRICS) or {}
    name = f"version {newest.version}{'' if newest.retired is None else ' (retired)'}"
    takes = {*read_facts(newest.uri).get("features", ())} - {*sensitive}
    served = Served(name, pushed_at, entry, statistics, metrics, takes=takes)
    if requests and (judged := newest.facts.get(PREDICTIONS)):
        from components.serving_check.predictions import recorded_predictions

        if recorded := recorded_predictions(Path(requests), newest):
            both = recorded, Statistics.FromString(base64.b64decode(judged))
            return replace(served, predictions=both)
    return served


class Driver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Driver of ``RetrainGate``; sets the exec property ``at``."""

    def run(self, execution_info: Any) -> driver_output_pb2.DriverOutput:
        result = driver_output_pb2.DriverOutput()
        result.exec_properties["at"].string_value = utc_now("microseconds")
        return result


class RetrainGateSpec(ComponentSpec):
    """What is known of the data and of the served model in, a decision out."""

    PARAMETERS = {
        "settings": ExecutionParameter(type=str),
        # In the order of their ids.
        "classes": ExecutionParameter(type=str),
        "serving_dir": ExecutionParameter(type=str),
        # Statistics of accepted data, a directory or an address.
        "baseline_store": ExecutionParameter(type=str),
        # Features that requests are recorded without.
        "sensitive": ExecutionParameter(type=str),
        # Set by the driver; see there.
        "at": ExecutionParameter(type=str, optional=True),
        # Where requests are recorded, if predictions are compared.
        "recorded": ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {
        "statistics": ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "quarantine": ChannelParameter(type=artifacts.Quarantine),
        # Statistics of serving requests.
        "requests": ChannelParameter(
            type=standard_artifacts.ExampleStatistics, optional=True
        ),
        "evaluation": ChannelParameter(
            type=standard_artifacts.ModelEvaluation, optional=True
        ),
    }
    OUTPUTS = {"decision": ChannelParameter(type=artifacts.RetrainVerdict)}


class RetrainGate(Component):
    """Decides whether the data of a run is a reason to train, and says why.

    Nodes that are to be skipped without a reason are made in a ``Cond`` of its
    decision.

    Example::

        gate = RetrainGate(
            statistics=statistics_gen.outputs["statistics"],
            quarantine=tfrecord_gen.outputs["quarantine"],
            settings=Retrain(min_new_examples=10_000, max_age_days=30),
            classes=("no", "yes"),
            serving_dir="/srv/trips/serving",
            baseline_store="/srv/trips/state/accepted",
        )
        decision = gate.outputs["decision"].future()[0]
        with Cond(decision.custom_property("retrain") == 1):
            transform = Transform(...)
    """

    SPEC_CLASS = RetrainGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
    DRIVER_CLASS = Driver
