"""The record's documents from artifacts on ``gs://``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tensorboard.compat.proto import meta_graph_pb2
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.tfrecord_gen.report import REPORT_FILE, Report
from runners.local.document_content import DescribedNode
from runners.local.write_documents import write_documents
from sluice.errors import NodeError, WorkspaceError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.cloud


def artifact(kind: str, uri: str, **properties: Any) -> dict[str, Any]:
    return {"id": 4, "type": kind, "uri": uri, "properties": properties}


def test_statistics_and_epochs_are_read_from_a_bucket(
    bucket: Any, tmp_path: Path
) -> None:
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    statistics.datasets.add(num_examples=3).features.add(name="fare")
    for split in ("train", "eval"):
        name = f"statistics/4/Split-{split}/FeatureStats.pb"
        bucket.put(name, statistics.SerializeToString())
    bucket.put("model_run/5/history.json", b'{"loss": [2.0, 1.0]}')
    checkpoint = bucket.put("model_run/5/checkpoints/weights", b"not needed")
    outputs = {
        "statistics": [
            artifact(
                "ExampleStatistics",
                bucket.uri("statistics/4"),
                split_names='["train", "eval"]',
            )
        ],
        "model_run": [artifact("ModelRun", bucket.uri("model_run/5"))],
    }
    bucket.requests()
    records = write_documents(DescribedNode("Node", outputs), tmp_path)
    statistics_file, epochs_file = (tmp_path / record.path for record in records)
    (document,) = json.loads(statistics_file.read_text())["artifacts"]
    assert document["uri"] == bucket.uri("statistics/4")
    assert [split["split"] for split in document["splits"]] == ["train", "eval"]
    assert [split["examples"] for split in document["splits"]] == [3, 3]
    (document,) = json.loads(epochs_file.read_text())["artifacts"]
    assert document["metrics"] == {"loss": [2.0, 1.0]}
    name = checkpoint.rpartition("/")[2]
    assert not [line for line in bucket.requests() if name in line]


def test_samples_and_a_model_are_read_from_a_bucket(
    bucket: Any, tmp_path: Path
) -> None:
    png = io.BytesIO()
    Image.new("L", (8, 8), 200).save(png, "png")
    example = Example()
    example.features.feature["image"].bytes_list.value.append(png.getvalue())
    records = tmp_path / "records.gz"
    tfrecord.write(records, [example.SerializeToString()] * 3)
    bucket.put("examples/1/Split-train/data.gz", records.read_bytes())
    graph: Any = meta_graph_pb2.MetaGraphDef()
    graph.meta_info_def.tensorflow_version = "2.16.2"
    content = graph.SerializeToString()
    saved = b"\x12" + bytes([len(content)]) + content
    bucket.put("model/2/Format-Serving/saved_model.pb", saved)
    bucket.put("model/2/Format-Serving/variables/weights-0", b"12345")
    split_names = '["train"]'
    uri = bucket.uri("examples/1")
    outputs = {
        "examples": [artifact("Examples", uri, split_names=split_names)],
        "model": [artifact("Model", bucket.uri("model/2"))],
    }
    bucket.requests()
    node = DescribedNode("Node", outputs)
    samples, model = (
        json.loads((tmp_path / record.path).read_text())["artifacts"][0]
        for record in write_documents(node, tmp_path)
    )
    (split,) = samples["splits"]
    assert (split["records"], split["complete"]) == (3, True)
    assert samples["features"][0]["duplicates"]["exact"]["images"] == 3
    assert (model["size_bytes"], model["tensorflow_version"]) == (
        len(saved) + 5,
        "2.16.2",
    )
    assert not [line for line in bucket.requests() if "weights-0" in line]


def test_an_ingestion_is_read_from_a_bucket(bucket: Any, tmp_path: Path) -> None:
    report = Report(
        files=(),
        splits={},
        records=7,
        quarantined=0,
        lost_bytes=0,
        bytes=70,
        corrupt_fraction=0.0,
        errors={},
    )
    content = json.dumps(report.to_dict()).encode()
    bucket.put(f"quarantine/1/{REPORT_FILE}", content)
    outputs = {
        "quarantine": [artifact("components.Quarantine", bucket.uri("quarantine/1"))]
    }
    (record,) = write_documents(DescribedNode("TFRecordGen", outputs), tmp_path)
    (document,) = json.loads((tmp_path / record.path).read_text())["artifacts"]
    assert document["records"] == 7


def test_damage_is_reported_with_the_address(bucket: Any, tmp_path: Path) -> None:
    bucket.put("model_run/5/history.json", b"{")
    outputs = {"model_run": [artifact("ModelRun", bucket.uri("model_run/5"))]}
    with pytest.raises(WorkspaceError, match="history cannot be read") as caught:
        write_documents(DescribedNode("Trainer", outputs), tmp_path)
    assert caught.value.where == bucket.uri("model_run/5/history.json")


def test_a_missing_artifact_is_an_error(bucket: Any, tmp_path: Path) -> None:
    outputs = {"model_run": [artifact("ModelRun", bucket.uri("model_run/6"))]}
    with pytest.raises(FileNotFoundError, match="model_run/6"):
        write_documents(DescribedNode("Trainer", outputs), tmp_path)


def test_an_object_whose_name_leads_outside_is_refused(
    bucket: Any, tmp_path: Path
) -> None:
    uri = bucket.put("model_run/7/../../../history.json", b"{}")
    outputs = {"model_run": [artifact("ModelRun", bucket.uri("model_run/7"))]}
    with pytest.raises(NodeError, match="leads outside") as caught:
        write_documents(DescribedNode("Trainer", outputs), tmp_path)
    assert caught.value.where == uri
