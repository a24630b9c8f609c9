"""Predictions of real SavedModels, and invalid models."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sample_data.tf_example import encode
from serving.predictor import Predictor
from serving.remote_model import connect
from sluice.errors import DataError, RemoteError, ServingError, UsageError
from sluice.tfrecords import tfrecord
from tests.serving.conftest import save_model

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("tf")]


@pytest.fixture(scope="module")
def addresses(image_model_dir, tabular_model_dir):
    """By model and place the address of its server."""
    folders = {"image": image_model_dir, "tabular": tabular_model_dir}
    command = [sys.executable, "-m", "serving.server", "--model"]
    servers = {
        name: subprocess.Popen(
            [*command, f"{name}={folder}"], stdout=subprocess.PIPE, text=True
        )
        for name, folder in folders.items()
    }
    ready = {
        name: json.loads(item.stdout.readline())  # type: ignore[union-attr]
        for name, item in servers.items()
    }
    yield {
        name: {
            "http": f"http://127.0.0.1:{item['port']}",
            "grpc": f"grpc://127.0.0.1:{item['grpc_port']}",
        }
        for name, item in ready.items()
    }
    for item in servers.values():
        item.kill()


@pytest.fixture(scope="module", params=["here", "http", "grpc"])
def image_model(image_model_dir, addresses, request):
    url = addresses["image"].get(request.param)
    return Predictor(image_model_dir, url and connect(url, "image"))


@pytest.fixture(scope="module", params=["here", "http", "grpc"])
def tabular_model(tabular_model_dir, addresses, request):
    url = addresses["tabular"].get(request.param)
    return Predictor(tabular_model_dir, url and connect(url, "tabular"))


@pytest.mark.parametrize("place", ["http", "grpc"])
def test_errors_of_a_server(tabular_model_dir, addresses, place):
    url = addresses["tabular"][place]
    with pytest.raises(ServingError, match="taxi"):
        connect(url, "taxi")
    gone = connect(url, "tabular", 7)
    with pytest.raises(ServingError, match="7"):
        Predictor(tabular_model_dir, gone)
    with pytest.raises(RemoteError, match="does not answer"):
        connect(f"{place}://127.0.0.1:9", "tabular")
    with pytest.raises(UsageError, match="no address of a server"):
        connect("127.0.0.1:8501", "tabular")


def encoded(grey: int, size: int = 4, kind: str = "png"):
    import tensorflow as tf

    pixels = tf.fill([size, size, 1], tf.cast(grey, tf.uint8))
    return getattr(tf.io, f"encode_{kind}")(pixels).numpy()


def example(**values):
    return encode({name: [value] for name, value in values.items()})


def write_lines(path: Path, *rows: dict):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def save(tf, serve, root, classes, inputs, task="classification"):
    module = tf.Module()
    module.examples = module.values = serve
    save_model(tf, module, root, [*classes], inputs, task)


def sigmoid(logit: float):
    return 1 / (1 + math.exp(-logit))


def test_image_files(image_model, tmp_path):
    images = {"a": (250, "png"), "b": (5, "jpeg"), "c": (128, "png")}
    for name, (grey, kind) in images.items():
        (tmp_path / name).write_bytes(encoded(grey, kind=kind))
    paths = [tmp_path / name for name in images]
    found = list(image_model.predict_files(paths))
    assert [row.label for row in found] == ["bright", "dark", "grey"]
    assert [row.source for row in found] == [str(path) for path in paths]
    assert sum(found[0].probabilities.values()) == pytest.approx(1.0, abs=1e-6)
    assert found[0].probabilities["bright"] > 0.99


@pytest.mark.parametrize("name", ["part", "part.gz", "new.csv"])
def test_records_of_a_binary_model(tabular_model, tmp_path, name):
    records = [
        example(miles=1.5, riders=1, payment=b"Cash"),
        example(miles=-9.0, riders=1, payment=b"Card", tips=1.0),
        example(),
    ]
    if name.endswith(".csv"):
        text = "miles,riders,payment,tips\n1.5,1,Cash,\n-9,1,Card,1\n,,,\n"
        (tmp_path / name).write_text(text)
    else:
        tfrecord.write(tmp_path / name, records)

    found = list(tabular_model.predict_files([tmp_path / name]))

    assert [row.label for row in found] == ["yes", "no", "no"]
    assert [row.index for row in found] == [0, 1, 2]
    for row, logit in zip(found, [4.0, -7.0, -0.75], strict=True):
        assert row.probabilities == {
            "no": pytest.approx(1 - sigmoid(logit), abs=1e-6),
            "yes": pytest.approx(sigmoid(logit), abs=1e-6),
        }


def test_missing_json_values_reach_the_model_as_missing(tabular_model, tmp_path):
    path = write_lines(
        tmp_path / "in.jsonl",
        {"miles": 1, "riders": 0, "payment": "Cash"},
        {"miles": None, "riders": None, "payment": None},
        {"miles": math.nan, "riders": math.nan, "payment": ""},
        {"miles": math.inf, "riders": -math.inf},
        {},
        {"riders": 1},
    )

    found = list(tabular_model.predict_files([path]))

    expected = [sigmoid(logit) for logit in (1.5, *[-0.75] * 4, 1.5)]
    actual = [row.probabilities["yes"] for row in found]
    assert actual == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"miles": 1e39}, "beyond 32 bits"),
        ({"miles": [1]}, "'miles', float32"),
        ({"riders": 2.5}, "'riders', int64"),
        ({"riders": 2**63}, "'riders', int64"),
        ({"payment": 3}, "'payment', string"),
        ({"payment": "\ud800"}, "'payment', string"),
    ],
)
def test_a_value_of_another_type_is_named(tabular_model, tmp_path, row, words):
    path = write_lines(tmp_path / "in.jsonl", {"riders": 1.0}, row, {"miles": 2})
    found = tabular_model.predict_files([path])

    assert next(found).label == "yes"
    with pytest.raises(DataError, match="cannot process this row") as caught:
        next(found)
    assert caught.value.where == f"{path}, line 2"
    assert words in str(caught.value)


@pytest.mark.parametrize("bad", [b"no proto", {"miles": b"far"}])
def test_record_that_the_model_cannot_parse_is_named(tabular_model, tmp_path, bad):
    bad = bad if isinstance(bad, bytes) else example(**bad)
    path = tmp_path / "records"
    tfrecord.write(path, [example(miles=1.0), bad, example(miles=2.0)])
    found = tabular_model.predict_files([path])

    assert next(found).index == 0
    with pytest.raises(DataError, match="cannot process this row") as caught:
        next(found)
    assert caught.value.where == f"{path}, record 2"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (lambda tf, x: tf.map_fn(tf.io.read_file, x), "No such file"),
        # A preprocessing left out rows.
        (lambda tf, x: x[:1], "2 rows have other numbers of .*'probabilities': 1"),
    ],
)
def test_model_that_fails_for_its_own_reasons(tf, tmp_path, answers, words):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(value):
        label = answers(tf, value)
        return {"label": label, "probabilities": tf.zeros([tf.size(label), 3])}

    save(tf, serve, tmp_path / "m", "abc", ["examples"])
    tfrecord.write(tmp_path / "records", [b"no such file", b"b"])

    with pytest.raises(ServingError, match=rf"(?s)model failed.*{words}.*/m"):
        list(Predictor(tmp_path / "m").predict_files([tmp_path / "records"]))


@pytest.fixture
def copy_of(tmp_path, tabular_model_dir):
    return Path(shutil.copytree(tabular_model_dir, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("saved_model.pb", 100),
        ("variables/variables.data*", 10),
        ("variables/variables.index", None),
    ],
)
def test_truncated_or_missing_file_of_the_model(copy_of, name, size):
    (path,) = copy_of.glob(name)
    path.unlink() if size is None else path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ServingError, match=r"(?s)cannot be loaded.*copy") as bad:
        Predictor(copy_of)
    # The first line of a long reason.
    assert "experimental_io_device" not in str(bad.value)


@pytest.mark.parametrize(
    ("targets", "names", "answers"),
    [
        (1, None, [2.0, 3.0]),
        (2, None, [[2.0, 1.0], [3.0, 1.5]]),
        (2, ["b", "a"], [{"b": 2.0, "a": 1.0}, {"b": 3.0, "a": 1.5}]),
    ],
)
def test_numbers_of_a_regression(tf, tmp_path, targets, names, answers):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(x):
        return {"prediction": (tf.sqrt(x)[:, None] / [[1.0, 2.0]])[:, :targets]}

    save(tf, serve, tmp_path / "m", "", ["x"], "regression")
    file = tmp_path / "m" / "assets.extra" / "classes.json"
    about = json.loads(file.read_text()) | ({"targets": names} if names else {})
    file.write_text(json.dumps(about))
    model = Predictor(tmp_path / "m")
    path = write_lines(tmp_path / "in.jsonl", {"x": 4}, {"x": 9}, {"x": -1})

    found = model.predict_files([path])

    assert [next(found).prediction for _ in answers] == answers
    with pytest.raises(DataError, match="prediction is not a finite") as caught:
        next(found)
    assert caught.value.where == f"{path}, line 3"
