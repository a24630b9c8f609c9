"""The record's documents from artifacts on ``gs://``."""

import io
import json

import pytest
from PIL import Image
from tensorboard.compat.proto import meta_graph_pb2
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.tfrecord_gen.report import REPORT_FILE, Report
from runners.documents.write import write_documents
from sluice.mlmd_items import Artifact
from sluice.record.parts import NodeEnd
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.cloud

SPLITS = {"split_names": '["train"]'}


def describe(folder, kind, uri, **properties):
    """Returns the documents of an artifact by kind, and the notes."""
    end = NodeEnd("Node", "ran", outputs={"made": [Artifact(4, kind, uri, properties)]})
    write_documents(end, folder, folder, {})
    found = {x.kind: json.loads((folder / x.path).read_text()) for x in end.documents}
    return found, end.notes


def test_only_what_a_document_says_is_read_from_a_bucket(bucket, tmp_path):
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    statistics.datasets.add(num_examples=3).features.add(name="fare")
    content = statistics.SerializeToString()
    bucket.put("statistics/4/Split-train/FeatureStats.pb", content)
    bucket.put("model_run/5/history.json", b'{"loss": [2.0, 1.0]}')
    bucket.put("model_run/5/checkpoints/weights", b"not needed")
    report = Report((), {}, 7, 0, 0, 70, 0.0, {})
    bucket.put(f"quarantine/1/{REPORT_FILE}", json.dumps(report.to_dict()).encode())
    png = io.BytesIO()
    Image.new("L", (8, 8), 200).save(png, "png")
    example = Example()
    example.features.feature["image"].bytes_list.value.append(png.getvalue())
    records = tmp_path / "records.gz"
    tfrecord.write(records, [example.SerializeToString()] * 3)
    bucket.put("examples/1/Split-train/data.gz", records.read_bytes())
    graph = meta_graph_pb2.MetaGraphDef()
    graph.meta_info_def.tensorflow_version = "2.16.2"
    content = graph.SerializeToString()
    saved = b"\x12" + bytes([len(content)]) + content
    bucket.put("model/2/Format-Serving/saved_model.pb", saved)
    bucket.put("model/2/Format-Serving/variables/weights-0", b"12345")
    bucket.requests()

    def document(kind, name, **properties):
        found, notes = describe(tmp_path, kind, bucket.uri(name), **properties)
        assert not notes
        return next(iter(found.values()))

    found = document("ExampleStatistics", "statistics/4", **SPLITS)
    assert found["uri"] == bucket.uri("statistics/4")
    assert found["splits"]["train"]["num_examples"] == "3"
    assert document("ModelRun", "model_run/5")["metrics"] == {"loss": [2.0, 1.0]}
    assert document("components.Quarantine", "quarantine/1")["records"] == 7
    found = document("Examples", "examples/1", **SPLITS)
    assert (found["records"], found["complete"]) == ({"train": 3}, True)
    assert found["features"][0]["equal"]["images"] == 3
    found = document("Model", "model/2")
    assert found["size_bytes"] == len(saved) + 5
    assert found["tensorflow_version"] == "2.16.2"
    assert not [line for line in bucket.requests() if "weights" in line]


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("model_run/7/history.json", b"{", "Expecting property name"),
        ("model_run/6/history.json", b"{}", "model_run/7"),
        ("model_run/7/../../../history.json", b"{}", "a name with '..'"),
    ],
    ids=["damaged", "missing", "outside"],
)
def test_what_cannot_be_described_is_a_note(bucket, tmp_path, name, content, note):
    bucket.put(name, content)
    found, notes = describe(tmp_path, "ModelRun", bucket.uri("model_run/7"))
    assert not found
    assert "could not be described: epochs" in notes[0] and note in notes[0]
