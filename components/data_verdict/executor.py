"""Executor of ``DataVerdict``: compares, judges, finds example records, publishes."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from components.accept_data.data_baselines import (
    DataBaseline,
    find_data_baseline,
    identify,
    read_entry,
)
from components.accept_data.entry import Entry
from components.artifacts import publish_verdict
from components.data_verdict.distances import Pair
from components.data_verdict.drift import Comparison, compare, validate
from components.data_verdict.int_range import int_breaches
from components.data_verdict.judge import Evidence, judge
from components.data_verdict.policy import Policy
from components.data_verdict.search_records import Source, add_examples, search_records
from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.report import Report
from sluice.record.json_number import json_number
from sluice.splits import (
    BASELINE_DIR,
    BASELINE_ENTRY,
    SERVING,
    SPLIT_PREFIX,
    number_of_examples,
    split_statistics_path,
)
from sluice.storage.storage import storage_for

TRAINING_ENVIRONMENT = "TRAINING"
SERVING_ENVIRONMENT = "SERVING"
DISTANCES_FILE = "distances.json"
_MAX_DISTANCES = 1000


class Executor(base_executor.BaseExecutor):
    """Executor of ``DataVerdict``; it succeeds whatever the verdict is."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        splits = json.loads(exec_properties["splits"])
        sensitive = json.loads(exec_properties["sensitive"])
        report = Report.load(artifact_utils.get_single_uri(input_dict["quarantine"]))
        serving = _serving_report(input_dict)
        measured = _measure(input_dict, splits)
        accepted = _accepted(exec_properties, report)
        hashed = exec_properties.get("hash_splits")
        source = Source(
            (*report.files, *(serving.files if serving else ())),
            HashSplits.model_validate_json(hashed).split_of if hashed else None,
            report.max_record_bytes,
        )
        entry = accepted.entry
        comparisons = [*_comparisons(measured, accepted, sensitive)]
        evidence = Evidence(
            splits=splits,
            statistics=measured.statistics,
            anomalies=measured.anomalies,
            schema=measured.schema,
            report=report,
            serving_report=serving,
            int_breaches=int_breaches(
                measured.statistics,
                measured.schema,
                lambda searches: search_records(searches, source),
            ),
            comparisons=comparisons,
            baseline=_title(entry) if entry else None,
            baseline_counts=entry.counts if entry else {},
            damaged=accepted.damaged,
            sensitive=sensitive,
        )
        policy = Policy.from_json(exec_properties["policy"])
        verdict = add_examples(
            judge(evidence, policy, exec_properties.get("override") or None),
            source,
            measured.schema,
            sensitive=sensitive,
        )
        published = artifact_utils.get_single_instance(output_dict["verdict"])
        _keep_baseline(accepted, published.uri)
        publish_verdict(verdict, published)
        _write_distances(comparisons, published.uri)


def _write_distances(comparisons: Sequence[Comparison], uri: str) -> None:
    """Writes ``distances.json``, which the record keeps; see docs/run_record.md."""
    found = [
        {
            "check": comparison.kind,
            "split": comparison.split,
            "against": comparison.against,
            "features": [
                {
                    "feature": item.feature,
                    "measure": item.measure,
                    "distance": json_number(item.value),
                    "limit": json_number(item.limit),
                }
                for item in comparison.distances[:_MAX_DISTANCES]
            ],
            "features_left_out": max(0, len(comparison.distances) - _MAX_DISTANCES),
        }
        for comparison in comparisons
    ]
    path = os.path.join(uri, DISTANCES_FILE)
    storage_for(uri).write_atomically(path, json.dumps({"comparisons": found}).encode())


@dataclass(frozen=True)
class _Measured:
    """Output of StatisticsGen and ExampleValidator by split, ``serving`` included."""

    schema: schema_pb2.Schema
    statistics: Mapping[str, statistics_pb2.DatasetFeatureStatisticsList | None]
    anomalies: Mapping[str, anomalies_pb2.Anomalies | None]


@dataclass(frozen=True)
class _Accepted:
    """The data baseline to compare with, and its statistics."""

    entry: Entry | None
    statistics: Mapping[str, statistics_pb2.DatasetFeatureStatisticsList]
    damaged: tuple[str, ...]


def _measure(input_dict: Mapping[str, list[Any]], splits: list[str]) -> _Measured:
    folder = artifact_utils.get_single_uri(input_dict["schema"])
    schema = io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(folder))
    artifact = artifact_utils.get_single_instance(input_dict["statistics"])
    anomalies_uri = artifact_utils.get_single_uri(input_dict["anomalies"])
    statistics = {split: _read_statistics(artifact.uri, split) for split in splits}
    anomalies = {
        split: _read(
            os.path.join(anomalies_uri, f"{SPLIT_PREFIX}{split}", "SchemaDiff.pb"),
            anomalies_pb2.Anomalies(),
        )
        for split in splits
    }
    if _is_filtered(schema):
        # ExampleValidator validates in no environment, so with all features.
        anomalies = {
            split: found and _validate_in(TRAINING_ENVIRONMENT, found, schema)
            for split, found in statistics.items()
        }
    if serving := _serving_statistics(input_dict):
        statistics[SERVING] = serving
        anomalies[SERVING] = _validate_in(SERVING_ENVIRONMENT, serving, schema)
    return _Measured(schema, statistics, anomalies)


def _is_filtered(schema: schema_pb2.Schema) -> bool:
    """Whether a feature is not expected in training."""
    return any(
        TRAINING_ENVIRONMENT in feature.not_in_environment for feature in schema.feature
    )


def _validate_in(
    environment: str,
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    schema: schema_pb2.Schema,
) -> anomalies_pb2.Anomalies:
    """Returns TFDV's anomalies in an environment; the schema need not declare it."""
    declared = schema_pb2.Schema()
    declared.CopyFrom(schema)
    if environment not in declared.default_environment:
        declared.default_environment.append(environment)
    return validate(statistics, declared, environment=environment)


def _serving_statistics(
    input_dict: Mapping[str, list[Any]],
) -> statistics_pb2.DatasetFeatureStatisticsList | None:
    artifacts = input_dict.get("serving_statistics")
    if not artifacts:
        return None
    artifact = artifact_utils.get_single_instance(artifacts)
    splits = artifact_utils.decode_split_names(artifact.split_names)
    return _read_statistics(artifact.uri, SERVING if SERVING in splits else splits[0])


def _serving_report(input_dict: Mapping[str, list[Any]]) -> Report | None:
    artifacts = input_dict.get("serving_quarantine")
    return Report.load(artifact_utils.get_single_uri(artifacts)) if artifacts else None


def _read_statistics(
    uri: str, split: str
) -> statistics_pb2.DatasetFeatureStatisticsList | None:
    path = split_statistics_path(uri, split)
    return _read(path, statistics_pb2.DatasetFeatureStatisticsList())


def _read(path: str, message: Any) -> Any:
    """Parses a file into ``message``; returns None if it was never written."""
    storage = storage_for(path)
    if not storage.is_file(path):
        return None
    message.ParseFromString(storage.read(path))
    return message


def _accepted(exec_properties: Mapping[str, Any], report: Report) -> _Accepted:
    """Reads the baseline that the driver selected; without a driver, selects it."""
    if text := exec_properties.get("baseline"):
        found = DataBaseline(**json.loads(text))
    else:
        found = find_data_baseline(exec_properties["baseline_store"], identify(report))
    if not found.record:
        return _Accepted(None, {}, tuple(found.damaged))
    entry, contents = read_entry(found.record)
    statistics = {
        split: statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
        for split, content in contents.items()
    }
    return _Accepted(entry, statistics, tuple(found.damaged))


def _keep_baseline(accepted: _Accepted, verdict_uri: str) -> None:
    """Copies what was compared with: the store may replace the entry later."""
    if accepted.entry is None:
        return
    contents = {BASELINE_ENTRY: accepted.entry.to_json().encode()}
    for split, statistics in accepted.statistics.items():
        path = split_statistics_path(BASELINE_DIR, split)
        contents[path] = statistics.SerializeToString()
    storage = storage_for(verdict_uri)
    for name, content in contents.items():
        path = os.path.join(verdict_uri, name)
        storage.make_folder(os.path.dirname(path))
        storage.write_atomically(path, content)


def _title(entry: Entry) -> str:
    return f"span {entry.name}" if entry.spans else entry.name


def _comparisons(
    measured: _Measured, accepted: _Accepted, sensitive: Collection[str]
) -> Iterator[Comparison]:
    for pair in _pairs(measured, accepted):
        both = (pair.current, pair.control)
        # An empty split has a row of its own.
        if all(number_of_examples(item) for item in both):
            comparison = compare(measured.schema, pair, sensitive)
            if comparison:
                yield comparison


def _pairs(measured: _Measured, accepted: _Accepted) -> Iterator[Pair]:
    statistics = {split: found for split, found in measured.statistics.items() if found}
    if accepted.entry:
        for split, current in statistics.items():
            if control := accepted.statistics.get(split):
                yield Pair("drift", split, _title(accepted.entry), current, control)
    train = statistics.get("train")
    if train and (control := statistics.get("eval")):
        yield Pair("split_drift", "train", "split eval", train, control)
    if train and (control := statistics.get(SERVING)):
        yield Pair("skew", "train", "serving examples", train, control)
