"""The model document: files, signatures, variables, layers and example requests."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto import meta_graph_pb2

from sluice.errors import WorkspaceError
from sluice.record.documents import model_document as module
from sluice.record.documents.example_request import ExampleRequests
from sluice.record.documents.model_document import model_document
from sluice.record.documents.privacy import Privacy
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

FLOAT, STRING, INT64 = 1, 7, 9


def no_request(*_: Any) -> None:
    return None


def saved_model() -> bytes:
    graph: Any = meta_graph_pb2.MetaGraphDef()
    graph.meta_info_def.tensorflow_version = "2.16.2"
    signature = graph.signature_def["serving_default"]
    given, returned = signature.inputs["examples"], signature.outputs["probabilities"]
    given.dtype = STRING
    given.tensor_shape.dim.add(size=-1)
    returned.dtype = FLOAT
    returned.tensor_shape.unknown_rank = True
    graph.signature_def["__saved_model_init_op"].outputs["op"].dtype = FLOAT
    for name, shape, trainable in (("kernel", (3, 4), True), ("mean", (), False)):
        variable = graph.object_graph_def.nodes.add().variable
        variable.name, variable.dtype, variable.trainable = name, FLOAT, trainable
        for size in shape:
            variable.shape.dim.add(size=size)
    content = graph.SerializeToString()
    length = bytes([len(content) & 0x7F | 0x80, len(content) >> 7])
    # The schema's version, then the graph.
    return b"\x08\x01" + b"\x12" + length + content


def write_model(folder: Path, **more: bytes) -> Path:
    for name, content in (("Format-Serving/saved_model.pb", saved_model()),):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(content)
    (folder / "Format-Serving" / "variables").mkdir()
    (folder / "Format-Serving" / "variables" / "data").write_bytes(b"x" * 5000)
    return folder


def test_a_model_is_described_without_tensorflow(tmp_path: Path) -> None:
    found = model_document(str(write_model(tmp_path)), None, no_request)
    assert found is not None
    size = 5000 + len(saved_model())
    assert found == {
        "size_bytes": size,
        "files": [
            {"path": "Format-Serving/variables/data", "size_bytes": 5000},
            {"path": "Format-Serving/saved_model.pb", "size_bytes": size - 5000},
        ],
        "files_left_out": 0,
        "model_dir": "Format-Serving",
        "tensorflow_version": "2.16.2",
        "signatures": [
            {
                "name": "serving_default",
                "inputs": [{"name": "examples", "dtype": "string", "shape": [None]}],
                "outputs": [
                    {"name": "probabilities", "dtype": "float32", "shape": None}
                ],
                "example_request": None,
            }
        ],
        "layers": None,
        "layers_left_out": 0,
        "variables": [
            {
                "name": "kernel",
                "dtype": "float32",
                "shape": [3, 4],
                "parameters": 12,
                "trainable": True,
            },
            {
                "name": "mean",
                "dtype": "float32",
                "shape": [],
                "parameters": 1,
                "trainable": False,
            },
        ],
        "variables_left_out": 0,
        "parameters": 13,
        "trainable_parameters": 12,
    }


def test_the_served_model_comes_first(tmp_path: Path) -> None:
    for name in ("Format-TFMA", "Format-Serving/1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "saved_model.pb").write_bytes(saved_model())
    found = model_document(str(tmp_path), None, no_request)
    assert found is not None
    assert found["model_dir"] == "Format-Serving/1"


def test_layers_are_those_that_the_trainer_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LAYERS", 2)
    model_run = tmp_path / "run"
    model_run.mkdir()
    layers = [{"name": str(number)} for number in range(3)]
    (model_run / "training.json").write_text(json.dumps({"layers": layers}))
    uri = str(write_model(tmp_path / "model"))
    found = model_document(uri, str(model_run), no_request)
    assert found is not None
    assert (found["layers"], found["layers_left_out"]) == (layers[:2], 1)
    (model_run / "training.json").unlink()
    found = model_document(uri, str(model_run), no_request)
    assert found is not None
    assert found["layers"] is None


def test_another_kind_of_model_has_files_only(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"1234")
    found = model_document(str(tmp_path), None, no_request)
    assert found is not None
    assert (found["size_bytes"], found["model_dir"]) == (4, None)
    assert (found["signatures"], found["variables"]) == ([], [])
    (tmp_path / "empty").mkdir()
    assert model_document(str(tmp_path / "empty"), None, no_request) is None


@pytest.mark.parametrize("cut", [0, 1, 4, 40])
def test_damage_is_an_error(tmp_path: Path, cut: int) -> None:
    path = write_model(tmp_path) / "Format-Serving" / "saved_model.pb"
    path.write_bytes(saved_model()[:cut])
    with pytest.raises(WorkspaceError, match="model cannot be read") as caught:
        model_document(str(tmp_path), None, no_request)
    assert caught.value.where == str(path)


def feature(name: str, kind: str, **values: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"numeric": None, "string": None, "bytes": None, **values}
    return {"name": name, "type": kind, "min_values": 1, **found}


def record(folder: Path) -> Path:
    """Writes what the run's record has of the data."""
    text = {"invalid_utf8": 0, "top_values": [{"value": "Cash", "count": 3}]}
    encoded = {"invalid_utf8": 3, "top_values": []}
    numbers = {"invalid_utf8": 0, "top_values": [{"value": "17", "count": 3}]}
    features = [
        feature("fare", "FLOAT", numeric={"median": 7.5}),
        feature("seconds", "INT", numeric={"median": 540.0}),
        feature("pay/type", "STRING", string=text),
        feature("hour", "INT", string=numbers),
        feature("image", "STRING", string=encoded),
        feature("age", "INT", numeric={"median": 33.0}),
        feature("label", "INT", numeric={"median": 1.0}),
    ]
    data = "data:image/png;base64," + base64.b64encode(b"PNG").decode()
    gallery = [{"class": "1", "images": [{"data": data}]}]
    transformed = [feature("fare", "FLOAT", numeric={"median": -0.5})]
    after = {"splits": [{"split": None, "features": transformed}]}
    (folder / "Transform.statistics.json").write_text(
        json.dumps({"artifacts": [after]})
    )
    for kind, artifact in (
        ("statistics", {"splits": [{"split": "train", "features": features}]}),
        ("samples", {"features": [{"name": "image", "gallery": gallery}]}),
    ):
        path = folder / f"Gen.{kind}.json"
        path.write_text(json.dumps({"artifacts": [artifact]}))
    return folder


def inputs(**dtypes: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "dtype": dtype, "shape": [None]}
        for name, dtype in dtypes.items()
    ]


PRIVACY = Privacy(sensitive={"age"}, label="label")


def test_a_request_with_one_value_per_feature(tmp_path: Path) -> None:
    requests = ExampleRequests(record(tmp_path), PRIVACY)
    given = inputs(
        fare="float32",
        seconds="int64",
        pay_type="string",
        hour="int64",
        image="string",
        age="int64",
        unknown="float32",
    )
    given.append({"name": "feature_fare", "dtype": "float32", "shape": [None, 2, 1]})
    assert requests.make("predict_values", given) == {
        "signature_name": "predict_values",
        "instances": [
            {
                "fare": 7.5,
                "seconds": 540,
                "pay_type": "Cash",
                "hour": 17,
                "image": {"b64": base64.b64encode(b"PNG").decode()},
                "age": 0,
                "unknown": 0.0,
                "feature_fare": [[7.5], [7.5]],
            }
        ],
    }


def test_a_request_with_a_tf_example(tmp_path: Path) -> None:
    requests = ExampleRequests(record(tmp_path), PRIVACY)
    request = requests.make("serving_default", inputs(examples="string"))
    (row,) = request["instances"]
    features = parse(base64.b64decode(row["examples"]["b64"])).features.feature
    assert "label" not in features
    assert features["fare"].float_list.value == [7.5]
    assert features["hour"].int64_list.value == [17]
    assert features["pay/type"].bytes_list.value == [b"Cash"]
    assert features["image"].bytes_list.value == [b"PNG"]
    assert features["age"].int64_list.value == [0]


def test_without_statistics_there_may_be_no_request(tmp_path: Path) -> None:
    requests = ExampleRequests(tmp_path, Privacy())
    assert requests.make("serving_default", inputs(examples="string")) is None
    assert requests.make("other", inputs(x="resource")) is None
    scalar = [{"name": "x", "dtype": "float32", "shape": []}]
    assert requests.make("other", scalar) is None
    wide = [{"name": "x", "dtype": "float32", "shape": [None, 4000, 4000, 3]}]
    assert requests.make("other", wide) is None
    assert requests.make("other", inputs(x="float32"))["instances"] == [{"x": 0.0}]
