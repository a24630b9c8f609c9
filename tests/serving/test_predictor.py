"""Predictions of real SavedModels, and invalid models."""

import json
import math
import shutil
from pathlib import Path

import pytest

from serving.feature_values import FeatureType
from serving.predictor import BATCH_SIZE, Predictor
from sluice.errors import DataError, ServingError
from sluice.tfrecords import tfrecord

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("tf")]


@pytest.fixture(scope="module")
def image_model(image_model_dir):
    return Predictor(image_model_dir)


@pytest.fixture(scope="module")
def tabular_model(tabular_model_dir):
    return Predictor(tabular_model_dir)


def encoded(grey: int, size: int = 4, kind: str = "png"):
    import tensorflow as tf

    pixels = tf.fill([size, size, 1], tf.cast(grey, tf.uint8))
    return getattr(tf.io, f"encode_{kind}")(pixels).numpy()


def example(**values):
    import tensorflow as tf

    message = tf.train.Example()
    for name, value in values.items():
        feature = message.features.feature[name]
        if isinstance(value, float):
            feature.float_list.value.append(value)
        elif isinstance(value, int):
            feature.int64_list.value.append(value)
        else:
            feature.bytes_list.value.append(value)
    return message.SerializeToString()


def write_lines(path: Path, *rows: dict):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def sigmoid(logit: float):
    return 1 / (1 + math.exp(-logit))


def test_features_are_those_of_the_plain_signature(image_model, tabular_model):
    assert image_model.features == {"image": FeatureType("string")}
    assert tabular_model.features == {
        "miles": FeatureType("float32"),
        "payment": FeatureType("string"),
        "riders": FeatureType("int64"),
    }


def test_image_files(image_model, tmp_path):
    images = {"a": (250, "png"), "b": (5, "jpeg"), "c": (128, "png")}
    for name, (grey, kind) in images.items():
        (tmp_path / name).write_bytes(encoded(grey, kind=kind))
    paths = [tmp_path / name for name in images]
    found = list(image_model.predict_files(paths))
    assert [row.label for row in found] == ["bright", "dark", "grey"]
    assert [row.source for row in found] == [str(path) for path in paths]
    # Without class names probabilities are a list.
    assert sum(found[0].probabilities) == pytest.approx(1.0, abs=1e-6)
    assert found[0].probabilities[2] > 0.99


@pytest.mark.parametrize("name", ["part", "part.gz"])
def test_tfrecords_of_a_binary_model(tabular_model, tmp_path, name):
    records = [
        example(miles=1.5, riders=1, payment=b"Cash"),
        example(miles=-9.0, riders=1, payment=b"Card", tips=1.0),
        example(),
    ]
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
        {},
        {"riders": 1},
    )

    found = list(tabular_model.predict_files([path]))

    expected = [sigmoid(logit) for logit in (1.5, -0.75, -0.75, 1.5)]
    actual = [row.probabilities["yes"] for row in found]
    assert actual == pytest.approx(expected, abs=1e-6)


def test_batches_and_kinds_do_not_change_the_answers(tabular_model, tmp_path):
    count = BATCH_SIZE + 44
    lines = [{"miles": i / 100, "riders": 0, "payment": "x"} for i in range(count)]
    records = [example(**(row | {"payment": b"x"})) for row in lines]
    tfrecord.write(tmp_path / "records", records)
    path = write_lines(tmp_path / "lines", *lines)

    found = list(tabular_model.predict_files([path, tmp_path / "records"]))

    assert [row.index for row in found] == list(range(count)) * 2
    probabilities = [row.probabilities["yes"] for row in found]
    assert probabilities[:count] == pytest.approx(probabilities[count:], abs=1e-6)
    expected = [sigmoid(i / 100) for i in range(count)]
    assert probabilities[:count] == pytest.approx(expected, abs=1e-6)


def test_limit_is_over_all_files_and_reads_no_further(tabular_model, tmp_path):
    first = write_lines(tmp_path / "a", {"miles": 1})
    second = write_lines(tmp_path / "b", {"miles": 2}, {"no such feature": 3})

    found = list(tabular_model.predict_files([first, second], limit=2))

    assert [(Path(row.source).name, row.index) for row in found] == [("a", 0), ("b", 0)]


def test_image_that_does_not_decode_is_named(image_model, tmp_path):
    (tmp_path / "good.png").write_bytes(encoded(255))
    (tmp_path / "bad.png").write_bytes(encoded(255)[:30])
    found = image_model.predict_files([tmp_path / "good.png", tmp_path / "bad.png"])

    assert next(found).label == "bright"
    with pytest.raises(DataError, match="cannot process this row") as caught:
        next(found)
    assert caught.value.where == str(tmp_path / "bad.png")
    assert caught.value.actual == "Invalid PNG. Failed to initialize decoder."


@pytest.mark.parametrize(
    ("record", "actual"),
    [
        (b"no proto", "Could not parse example input"),
        ({"miles": b"far"}, "Name: <unknown>, Key: miles, Index: 0"),
    ],
    ids=["not an example", "another type"],
)
def test_record_that_the_model_cannot_parse_is_named(
    tabular_model, tmp_path, record, actual
):
    bad = record if isinstance(record, bytes) else example(**record)
    path = tmp_path / "records"
    tfrecord.write(path, [example(miles=1.0), bad, example(miles=2.0)])
    found = tabular_model.predict_files([path])

    assert next(found).index == 0
    with pytest.raises(DataError, match="cannot process this row") as caught:
        next(found)
    assert caught.value.where == f"{path}, record 2"
    assert str(caught.value.actual).startswith(actual)


def test_model_that_fails_for_its_own_reasons(tf, tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(value):
        label = tf.map_fn(tf.io.read_file, value)
        return {"label": label, "probabilities": tf.zeros([1, 3])}

    signatures = {"serving_default": serve, "predict_values": serve}
    tf.saved_model.save(tf.Module(), str(tmp_path / "m"), signatures=signatures)
    tfrecord.write(tmp_path / "records", [b"no such file"])

    with pytest.raises(ServingError, match=r"(?s)model failed.*/m.*No such file"):
        list(Predictor(tmp_path / "m").predict_files([tmp_path / "records"]))


def test_batches_are_bounded_in_bytes(image_model, tmp_path, monkeypatch):
    image = encoded(255)
    sizes = []
    call = image_model._values

    def record(image):
        sizes.append(len(image))
        return call(image=image)

    monkeypatch.setattr(image_model, "_values", record)
    monkeypatch.setattr("serving.predictor._BATCH_BYTES", 2 * len(image))
    paths = [tmp_path / f"{i}.png" for i in range(7)]
    for path in paths:
        path.write_bytes(image)

    assert len(list(image_model.predict_files(paths))) == 7
    assert sizes == [3, 3, 1]


@pytest.fixture
def copy_of(tmp_path, tabular_model_dir):
    return Path(shutil.copytree(tabular_model_dir, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("saved_model.pb", 100),
        ("saved_model.pb", 0),
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
    ("content", "message"),
    [
        ('{"classes": ["a", "b", "c"]}', "class names do not match"),
        ('{"classes": 3}', "class names cannot be read"),
        ("{", "class names cannot be read"),
        ("[]", "class names cannot be read"),
    ],
)
def test_class_names_that_do_not_fit(copy_of, tmp_path, content, message):
    (copy_of / "assets.extra" / "classes.json").write_text(content)
    path = write_lines(tmp_path / "in.jsonl", {"miles": 1})

    with pytest.raises(ServingError, match=message) as caught:
        list(Predictor(copy_of).predict_files([path]))
    assert str(caught.value.where).endswith("classes.json")


def save(root: Path, signature, name: str = "serving_default"):
    import tensorflow as tf

    tf.saved_model.save(tf.Module(), str(root), signatures={name: signature})
    return root


def function_of(input_name: str, dtype: str, outputs: list[str]):
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None], dtype, name=input_name)])
    def serve(value):
        return dict.fromkeys(outputs, tf.identity(value))

    return serve


@pytest.mark.parametrize(
    ("name", "input_name", "outputs", "expected", "actual"),
    [
        ("predict", "examples", ["label"], "a signature 'serving_default'", "predict"),
        ("serving_default", "examples", ["scores"], "'probabilities'", "scores"),
        ("serving_default", "x", ["label", "probabilities"], "'examples'", "x"),
        (
            "serving_default",
            "examples",
            ["label", "probabilities"],
            "a signature 'predict_values'",
            "serving_default",
        ),
    ],
)
def test_model_with_other_signatures(
    tmp_path, name, input_name, outputs, expected, actual
):
    save(tmp_path / "m", function_of(input_name, "string", outputs), name)

    with pytest.raises(ServingError, match="does not have the signatures") as caught:
        Predictor(tmp_path / "m")
    assert expected in str(caught.value.expected)
    assert caught.value.actual == actual
