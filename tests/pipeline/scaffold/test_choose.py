"""Samples of records, and the label and features chosen from them."""

from __future__ import annotations

import gzip
import io

import pytest
from PIL import Image

from pipeline.scaffold import sample as sample_module
from pipeline.scaffold.choose import choose_features
from pipeline.scaffold.choose_label import choose_label, gives_away, task_of
from pipeline.scaffold.sample import read_sample
from sample_data.tf_example import encode
from sluice.errors import DataError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf


def picture(width, height, mode="RGB", kind="PNG"):
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, kind)
    return file.getvalue()


NUMERIC, VOCABULARY = {"kind": "numeric"}, {"kind": "vocabulary"}
OPTIONAL = {**NUMERIC, "missing_indicator": True}
HASHED = {"kind": "hashed", "buckets": 256}
MULTI_HOT, VECTOR = {"kind": "multi_hot"}, {"kind": "vector"}

MANY = {"kind": "multi_hot", "top_k": 50}


def image(height, width, channels):
    return {"kind": "image", "height": height, "width": width, "channels": channels}


TEXT = {"kind": "text", "length": 5}
TIME = {"kind": "time", "parts": ["hour", "weekday"]}
MONTHS = {"kind": "time", "parts": ["weekday", "month"]}
TOKENS = {"kind": "text", "length": 9, "split": False}


@pytest.mark.parametrize(
    ("name", "column", "seen_as", "spec"),
    [
        ("x", lambda n: n / 7, "number", NUMERIC),
        ("x", lambda n: 1e6 if n == 7 else n / 7, "number", {**NUMERIC, "log": True}),
        ("x", lambda n: n / 7 if n % 2 else None, "number", OPTIONAL),
        ("x", lambda n: n % 4, "categorical", VOCABULARY),
        ("user", lambda n: (2**24 + n % 3) * (n % 2), "categorical", HASHED),
        ("store_code", lambda n: 37 * (n % 60), "categorical", HASHED),
        ("x", lambda n: b"abc"[n % 3 : n % 3 + 1], "categorical", VOCABULARY),
        ("x", lambda n: b"%d" % (n % 64), "categorical", HASHED),
        ("x", lambda n: b"%d" % (n % 65), "categorical", {**HASHED, "buckets": 512}),
        ("row", lambda n: n, "identifier", None),
        ("user_id", lambda n: 7919 * n, "identifier", None),
        # From Tuesday, 2023-11-14, 22:13:20 to Wednesday.
        ("created_at", lambda n: 1_700_000_000 + 61 * n, "time", TIME),
        ("created_at", lambda n: 1_700_000_000_000 + 61 * n, "timestamp", None),
        ("x", lambda n: b"2026-%02d-01" % (n % 12 + 1), "time", MONTHS),
        # Too many are no days of February.
        ("x", lambda n: b"2026-02-%d" % (10 + n % 25), "categorical", VOCABULARY),
        ("x", lambda n: b"2026-03-0%d" % (2 + 7 * (n % 2)), "time", None),
        ("x", lambda n: 5, "constant", None),
        ("x", lambda n: float("nan") if n == 3 else 1.0 * n, "not_finite", None),
        ("x", lambda n: [1, 2] if n % 2 else [1], "categories", MULTI_HOT),
        ("x", lambda n: [1, n], "vector", VECTOR),
        ("genres", lambda n: [n % 4, 3], "categories", MULTI_HOT),
        ("x", lambda n: [b"a", b"b", b"c"][: n % 3], "categories", MULTI_HOT),
        ("x", lambda n: [b"%d" % (n % 50)] * (n % 7), "categories", MANY),
        ("x", lambda n: [b"%d" % n] * (1 + n // 299), "identifier", None),
        ("x", lambda n: [b"w%d" % (n * k % 1999) for k in range(9)], "tokens", TOKENS),
        ("x", lambda n: b"the film %d was good" % n, "text", TEXT),
        ("x", lambda n: [n / 7] * (1 + n % 2), "several_values", None),
        ("x", lambda n: [n / 7, 1.0] if n else None, "several_values", None),
        ("x", lambda n: bytes([200, n % 7]), "binary", None),
        ("email", lambda n: b"a@b" if n % 2 else b"c@d", "sensitive", None),
        ("x", lambda n: picture(8, 6), "image", image(6, 8, 3)),
        # TensorFlow decodes no BMP to one channel.
        ("x", lambda n: picture(8, 8, "L", "BMP"), "image", image(8, 8, 3)),
        ("x", lambda n: picture(1000, 500), "image", image(48, 96, 3)),
        # Of many sizes the median short side is 60, the median proportions are 3 : 2.
        (
            "x",
            lambda n: picture(*[(90, 60), (60, 40), (75, 100)][n % 3]),
            "image",
            {**image(64, 88, 3), "resize": "fit"},
        ),
        ("x", lambda n: picture(8, 6) if n % 2 else None, "binary", None),
        ("x", lambda n: picture(8, 8, "RGB", "WEBP"), "binary", None),
    ],
)
def test_a_column_becomes_a_feature(table, name, column, seen_as, spec):
    sample = table(300, **{name: column})

    (found,) = choose_features(sample, "label")

    assert (found.seen_as, found.spec) == (seen_as, spec)
    assert found.why and not found.why.endswith(".")


@pytest.mark.parametrize(
    ("columns", "label", "why"),
    [
        ({"label": lambda n: n % 3, "won": lambda n: n % 2}, "label", "is 'label'"),
        (
            {
                "image/class/label": lambda n: 1 + n % 3,
                "image/class/text": lambda n: b"abc"[n % 3 : n % 3 + 1],
            },
            "image/class/label",
            "ends in 'label'",
        ),
        ({"label": lambda n: n / 7, "day": lambda n: n % 7}, "label", "is 'label'"),
        ({"y": lambda n: n / 7, "class": lambda n: n % 7}, "class", "is 'class'"),
    ],
)
def test_a_label_is_guessed_by_its_usual_names(table, columns, label, why):
    column, reason = choose_label(table(**columns), None)
    assert (column.name, why in reason) == (label, True)


@pytest.mark.parametrize(
    ("label", "task"),
    [
        (lambda n: n / 7, "regression"),
        (lambda n: [n / 7, n / 3], "regression"),
        (lambda n: 37 * n % 1009 * 100, "regression"),
        (lambda n: 13 * n % 150, "regression"),  # As classes two records each.
        (lambda n: n % 15, "classification"),
        (lambda n: b"%d" % (n % 15), "classification"),
    ],
)
def test_the_task_of_a_label(table, label, task):
    assert task_of(table(200, x=label).columns["x"]) == task


def test_pixels_are_known_by_features_with_their_size(table):
    floats = bytes(4 * 6 * 8)
    columns = {"h": 6, "w": 8, "a": [7] * 48, "b": floats, "c": [7] * 49}
    sample = table(**{name: lambda n, x=x: x for name, x in columns.items()})
    found = {x.name: x.spec for x in choose_features(sample, "label")}
    assert found["a"] == {"kind": "pixels", "height": 6, "width": 8, "channels": 1}
    assert found["b"] == {**found["a"], "dtype": "float32"}
    assert found["c"] == VECTOR


def write(path, count, size=1):
    tfrecord.write(path, (encode({"x": [b"v" * size]}) for _ in range(count)))
    return path


def test_a_sample_is_the_first_records_of_each_file(tmp_path, monkeypatch):
    files = [write(tmp_path / name, 30) for name in ("a", "b.gz")]
    # Compression is detected by content.
    (tmp_path / "b").write_bytes(gzip.compress(files[0].read_bytes()))
    few = read_sample(files, per_file=20)
    assert (few.records, few.is_complete) == (40, False)
    assert few.text == "the first 40 records of 2 of 2 files"
    whole = read_sample([*files, tmp_path / "b"])
    assert (whole.records, whole.text) == (90, "all 90 records of 3 files")
    many = read_sample([files[0]] * 39 + [tmp_path / "not read"] + [files[0]] * 40)
    assert (many.records, many.is_complete) == (40 * 30, False)
    monkeypatch.setattr(sample_module, "MAX_BYTES", 10_000)
    assert read_sample([write(tmp_path / "c", 50, size=1000)]).records == 10


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([encode({"a": [1]}), b"\x07hello"], "not a tf.Example"),
        ([b"\x12\x00"], "SequenceExample"),
        ([encode({"b": [1]}), encode({"b": [b"x"]})], "cannot be decoded: .*b"),
    ],
)
def test_records_that_cannot_be_read(tmp_path, records, says):
    tfrecord.write(tmp_path / "a", records)
    with pytest.raises(DataError, match=says):
        read_sample([tmp_path / "a"])
    (tmp_path / "a").write_bytes(b"no records at all")
    with pytest.raises(DataError, match="not a TFRecord"):
        read_sample([tmp_path / "a"])


def test_features_that_give_the_label_away(table):
    sample = table(
        label=lambda n: n // 20 % 2,
        copy=lambda n: float(n // 20 % 2),
        text=lambda n: b"abcd"[n // 10 % 4 : n // 10 % 4 + 1],
        late=lambda n: n / 1000 + n // 20 % 2,
        row=lambda n: n,
        other=lambda n: n % 7,
        rare=lambda n: 1 if n // 20 % 2 else None,
        sometimes=lambda n: 1 if n // 10 % 2 else None,
    )
    label = sample.columns["label"]
    found = {x: gives_away(sample.columns[x], label) for x in sample.columns}
    del found["label"]
    assert found == {
        "copy": "thresholds of it separate the classes",
        "text": "each of its values has one class",
        "late": "thresholds of it separate the classes",
        "row": None,
        "other": None,
        "rare": "all records with it have one class",
        "sometimes": None,
    }
