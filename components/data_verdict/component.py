"""The ``DataVerdict`` node: judges the data; always succeeds.

Its driver selects the data baseline before the cache lookup: the baseline is no input
of the node in the graph, and it changes between runs. Selected there, it is part of the
cache key. Cloud engines run no custom drivers: there the executor selects it, and the
node must not be cached.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.dsl.components.base import (
    base_driver,
    base_executor,
    executor_spec,
)
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.proto.orchestration import driver_output_pb2
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.utils import io_utils

from components import artifacts
from components.artifacts import Artifacts, publish_verdict
from components.component import Component
from components.data_baselines import find_data_baseline, identify, read_entry
from components.data_verdict.drift import Comparison
from components.data_verdict.judge import Evidence, compare_all, judge
from components.data_verdict.search_records import add_examples
from components.data_verdict.settings import Settings
from components.tfrecord_gen.ingestion_report import Report
from schemas.data_statistics import Statistics, validate_in
from schemas.loader import SERVING as SERVING_ENVIRONMENT
from schemas.loader import TRAINING as TRAINING_ENVIRONMENT
from sluice.record.verdict import Verdict
from sluice.splits import (
    BASELINE_DIR,
    BASELINE_ENTRY,
    SERVING,
    SPLIT_PREFIX,
    split_statistics_path,
)
from sluice.storage.storage import storage_for

DISTANCES_FILE = "distances.json"


class Executor(base_executor.BaseExecutor):
    """Executor of ``DataVerdict``; it succeeds whatever the verdict is."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        settings = Settings.model_validate_json(exec_properties["settings"])
        evidence = _read(input_dict, settings, exec_properties)
        comparisons = [*compare_all(evidence, settings)]
        rows = add_examples(
            judge(evidence, comparisons, settings),
            [*evidence.reports.values()],
            evidence.schema,
            hash_splits=settings.hash_splits,
            sensitive=settings.sensitive,
        )
        verdict = Verdict("data", tuple(rows))
        if not verdict.passed:
            verdict = replace(verdict, override=exec_properties.get("override") or None)
        published = artifact_utils.get_single_instance(output_dict["verdict"])
        publish_verdict(verdict, published)
        _publish_comparisons(evidence, comparisons, published.uri)


def _read(
    inputs: Mapping[str, list[Any]], settings: Settings, properties: Mapping[str, Any]
) -> Evidence:
    """Reads the artifacts, and the baseline that the driver found, or finds it."""
    folder = artifact_utils.get_single_uri(inputs["schema"])
    schema = io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(folder))
    uri = artifact_utils.get_single_uri(inputs["statistics"])
    anomalies_uri = artifact_utils.get_single_uri(inputs["anomalies"])
    statistics, anomalies = {}, {}
    for split in settings.splits:
        found = _parse(Statistics, split_statistics_path(uri, split))
        path = os.path.join(anomalies_uri, f"{SPLIT_PREFIX}{split}", "SchemaDiff.pb")
        statistics[split] = found
        anomalies[split] = _parse(anomalies_pb2.Anomalies, path)
        if found and any(
            TRAINING_ENVIRONMENT in x.not_in_environment for x in schema.feature
        ):
            # ExampleValidator validates in no environment, so with all features.
            anomalies[split] = validate_in(TRAINING_ENVIRONMENT, found, schema)
    quarantine = artifact_utils.get_single_uri(inputs["quarantine"])
    reports = {"overall": Report.load(quarantine)}
    if optional := inputs.get("serving_quarantine"):
        reports[SERVING] = Report.load(artifact_utils.get_single_uri(optional))
    if optional := inputs.get("serving_statistics"):
        uri = artifact_utils.get_single_uri(optional)
        if found := _parse(Statistics, split_statistics_path(uri, SERVING)):
            statistics[SERVING] = found
            anomalies[SERVING] = validate_in(SERVING_ENVIRONMENT, found, schema)
    baseline = properties.get("baseline")
    if not baseline:  # Cloud engines run no custom drivers.
        own = identify(reports["overall"])
        baseline = find_data_baseline(properties["baseline_store"], own)
    entry, accepted = read_entry(baseline) if baseline else (None, {})
    return Evidence(schema, statistics, anomalies, reports, entry, accepted)


def _parse(message: Any, path: str) -> Any:
    """Returns the message in a file; None if it was never written."""
    storage = storage_for(path)
    return message.FromString(storage.read(path)) if storage.is_file(path) else None


def _publish_comparisons(
    evidence: Evidence, comparisons: Sequence[Comparison], uri: str
) -> None:
    """Writes ``distances.json``, and the data that was compared with."""
    documents = [
        {
            "check": item.pair.kind,
            "split": item.pair.split,
            "against": item.pair.against,
            "features": [*map(asdict, item.distances)],
        }
        for item in comparisons
    ]
    contents = {DISTANCES_FILE: json.dumps({"comparisons": documents}).encode()}
    if evidence.baseline:
        contents[BASELINE_ENTRY] = evidence.baseline.model_dump_json().encode()
        for split, statistics in evidence.baseline_statistics.items():
            path = split_statistics_path(BASELINE_DIR, split)
            contents[path] = statistics.SerializeToString()
    storage = storage_for(uri)
    for name, content in contents.items():
        path = os.path.join(uri, name)
        storage.make_folder(os.path.dirname(path))
        storage.write_atomically(path, content)


class Driver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Driver of ``DataVerdict``; sets the exec property ``baseline``."""

    def run(self, execution_info: Any) -> driver_output_pb2.DriverOutput:
        quarantine = execution_info.input_dict["quarantine"]
        report = Report.load(artifact_utils.get_single_uri(quarantine))
        store = execution_info.exec_properties["baseline_store"]
        baseline = find_data_baseline(store, identify(report))
        result = driver_output_pb2.DriverOutput()
        result.exec_properties["baseline"].string_value = baseline
        return result


_OPTIONAL_TEXT = ExecutionParameter(type=str, optional=True)


class DataVerdictSpec(ComponentSpec):
    """Statistics, anomalies, schema and the ingestion's report in, a verdict out."""

    PARAMETERS = {
        "settings": ExecutionParameter(type=str),
        # Statistics of accepted data, a directory or an address.
        "baseline_store": ExecutionParameter(type=str),
        # A person's reason to accept the data anyway.
        "override": _OPTIONAL_TEXT,
        # Set by the driver; see there.
        "baseline": _OPTIONAL_TEXT,
    }
    INPUTS = {
        "statistics": ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "anomalies": ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "schema": ChannelParameter(type=standard_artifacts.Schema),
        "quarantine": ChannelParameter(type=artifacts.Quarantine),
        "serving_statistics": ChannelParameter(
            type=standard_artifacts.ExampleStatistics, optional=True
        ),
        "serving_quarantine": ChannelParameter(
            type=artifacts.Quarantine, optional=True
        ),
    }
    OUTPUTS = {
        "verdict": ChannelParameter(type=artifacts.DataVerdict),
    }


class DataVerdict(Component):
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
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
    DRIVER_CLASS = Driver
