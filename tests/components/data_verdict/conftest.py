"""Fixtures to run DataVerdict and AcceptData on real records and TFDV's statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.data_verdict.settings import Policy, Settings
from pipeline.graph.arguments import statistics_options
from sample_data.tf_example import encode
from sluice.record.verdict import Verdict
from tests.kit.ingestion_reports import a_file, a_report

SPLITS = ("train", "eval")
SCHEMA = """
default_environment: "TRAINING"
default_environment: "SERVING"
feature {
  name: "fare" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } }
  drift_comparator { jensen_shannon_divergence { threshold: 0.2 } }
}
feature {
  name: "pay" type: BYTES presence { min_fraction: 1.0 } shape { dim { size: 1 } }
  domain: "pay"
  drift_comparator { infinity_norm { threshold: 0.1 } }
  skew_comparator { infinity_norm { threshold: 0.1 } }
}
feature {
  name: "label" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } }
  int_domain { min: 0 max: 1 is_categorical: true }
  not_in_environment: "SERVING"
  skew_comparator { jensen_shannon_divergence { threshold: 0.1 } }
}
string_domain { name: "pay" value: "Cash" value: "Card" value: "Jane Doe" }
"""

Record = dict[str, Any]
Statistics = statistics_pb2.DatasetFeatureStatisticsList


def _schema(text: str = SCHEMA) -> schema_pb2.Schema:
    return text_format.Parse(text, schema_pb2.Schema())


class Workbench:
    """Runs DataVerdict and AcceptData on records as the launcher does, without it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.baseline_store = root / "accepted"
        self.count = 0

    schema = SCHEMA

    @staticmethod
    def records(count: int = 200, cash: float = 0.5) -> list[Record]:
        """Returns good records; a share of them was paid in cash."""
        return [
            {
                "fare": [float(n % 20)],
                "pay": [b"Cash" if n < cash * count else b"Card"],
                "label": [n % 2],
            }
            for n in range(count)
        ]

    def changed(self, number: int, **values: Any) -> list[Record]:
        """Returns good records, one of them with other values; None leaves one out."""
        records = self.records()
        record = records[number - 1] | values
        records[number - 1] = {key: value for key, value in record.items() if value}
        return records

    @staticmethod
    def statistics_of(records: Sequence[Record], schema: schema_pb2.Schema) -> Any:
        """Returns what StatisticsGen would write about records."""
        from tensorflow_data_validation.statistics import stats_impl
        from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

        if not records:
            empty = statistics_pb2.DatasetFeatureStatisticsList()
            empty.datasets.add()
            return empty
        encoded = [encode(record) for record in records]
        batch = ExamplesToRecordBatchDecoder().DecodeBatch(encoded)
        options = statistics_options(schema)
        return stats_impl.generate_statistics_in_memory(batch, options)

    @staticmethod
    def artifact(kind: Callable[[], Any], path: Path) -> Any:
        """Returns an artifact of a type, at a path."""
        artifact = kind()
        artifact.uri = str(path)
        return artifact

    def judge(
        self,
        train: Sequence[Record] | None = None,
        evaluation: Sequence[Record] | None = None,
        *,
        serving: Sequence[Record] | None = None,
        schema: str = SCHEMA,
        spans: tuple[int, ...] = (),
        policy: Policy | None = None,
        sensitive: tuple[str, ...] = (),
        override: str | None = None,
    ) -> Verdict:
        """Returns the verdict; a split that is not given is good."""
        from tfx.orchestration.portable import data_types

        from components.data_verdict.component import Driver, Executor

        self.count += 1
        self.folder = self.root / f"run-{self.count}"
        records = {
            split: self.records() if given is None else given
            for split, given in zip(SPLITS, (train, evaluation), strict=True)
        }
        inputs = self._inputs(records, _schema(schema), spans)
        if serving is not None:
            given = self._statistics({"serving": serving}, _schema(schema))
            inputs["serving_statistics"] = given
        settings = Settings(
            splits=SPLITS, policy=policy or Policy(), sensitive=sensitive
        )
        self.properties = {
            "settings": settings.model_dump_json(),
            "baseline_store": str(self.baseline_store),
            "override": override,
        }
        info = data_types.ExecutionInfo(
            input_dict=inputs, exec_properties=self.properties
        )
        resolved = Driver(None).run(info).exec_properties["baseline"].string_value
        self.properties["baseline"] = resolved
        self.inputs = inputs
        from components import artifacts

        verdict = self.artifact(artifacts.DataVerdict, self.folder / "verdict")
        Executor().Do(inputs, {"verdict": [verdict]}, self.properties)
        self.inputs["verdict"] = [verdict]
        return Verdict.load(self.folder / "verdict")

    def accept(self) -> None:
        """Accepts what was judged last."""
        from components.accept_data import Executor

        Executor().Do(self.inputs, {}, self.properties)

    def text(self) -> str:
        """Returns the last verdict as written, without the baseline's statistics."""
        files = (self.folder / "verdict").iterdir()
        return "".join(path.read_text() for path in files if path.is_file())

    def _inputs(
        self,
        records: Mapping[str, Sequence[Record]],
        schema: schema_pb2.Schema,
        spans: tuple[int, ...],
    ) -> dict[str, list[Any]]:
        from tfx.types import standard_artifacts

        from components import artifacts
        from schemas.data_statistics import validate

        folder = self.folder
        files = [
            a_file(folder / f"{split} 0.tfrecord", given, split)
            for split, given in records.items()
        ]
        splits = {split: len(given) for split, given in records.items()}
        report = a_report(*files, splits=splits, spans=spans)
        _write(folder / "q" / "report.json", report.to_json())
        _write(folder / "schema" / "schema.pbtxt", str(schema).encode())
        statistics = self._statistics(records, schema)
        for split in records:
            path = folder / "stats-train" / f"Split-{split}" / "FeatureStats.pb"
            measured = Statistics.FromString(path.read_bytes())
            found = validate(measured, schema)
            target = folder / "anomalies" / f"Split-{split}" / "SchemaDiff.pb"
            _write(target, found.SerializeToString())
        return {
            "statistics": statistics,
            "anomalies": [
                self.artifact(standard_artifacts.ExampleAnomalies, folder / "anomalies")
            ],
            "schema": [self.artifact(standard_artifacts.Schema, folder / "schema")],
            "quarantine": [self.artifact(artifacts.Quarantine, folder / "q")],
        }

    def _statistics(
        self, records: Mapping[str, Sequence[Record]], schema: schema_pb2.Schema
    ) -> list[Any]:
        from tfx.types import artifact_utils, standard_artifacts

        folder = self.folder / f"stats-{next(iter(records))}"
        for split, given in records.items():
            content = self.statistics_of(given, schema).SerializeToString()
            _write(folder / f"Split-{split}" / "FeatureStats.pb", content)
        artifact = self.artifact(standard_artifacts.ExampleStatistics, folder)
        artifact.split_names = artifact_utils.encode_split_names(list(records))
        return [artifact]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)
