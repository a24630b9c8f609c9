"""The records of the real data sets, as read by TensorFlow."""

from __future__ import annotations

import csv
import functools
import shutil
from collections import Counter
from decimal import Decimal

import pytest

from sample_data import catalog, taxi
from sluice.errors import DataError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

# Digests of the records per shard. Where one changes, raise the data set's version.
EXPECTED = {
    "digits": {
        "train-00000-of-00004.tfrecord": (
            300,
            "45b2471b70c1b8a0d1bb07cc5ef1d7c52adfa2f8f21806be50b106eb5a71595d",
        ),
        "train-00001-of-00004.tfrecord": (
            300,
            "f85c80121ca447009798afc190afbc816e9800dced8ec0b666937f19fffef84b",
        ),
        "train-00002-of-00004.tfrecord": (
            300,
            "61cac197b8ac9f676fd213660956340f065904c4227e397e647e4bdf7c885752",
        ),
        "train-00003-of-00004.tfrecord": (
            300,
            "b04e0968e764b485a46cb12cbd0f75f85fc0595cbb6424dca46aea4a2077ca86",
        ),
        "eval-00000-of-00002.tfrecord": (
            149,
            "6215d1a85f2b3277465c9415568a74f0544be2bb75f71873a149385cef93652e",
        ),
        "eval-00001-of-00002.tfrecord": (
            148,
            "78028c75c32d8f14ecbdc6608003976f71c039a3a9fb21ae72f0fcec25b0da71",
        ),
        "test-00000-of-00002.tfrecord": (
            150,
            "80f628f88aa124cde1fca97398055fa1b8ab04dbc803d77652fd61837d3cbbee",
        ),
        "test-00001-of-00002.tfrecord": (
            150,
            "d6cca01ec73dcf0cd4d152016a7e01619394672bcec0e8e20ca7cb1041ea8292",
        ),
    },
    "taxi": {
        "train-00000-of-00004.tfrecord.gz": (
            2626,
            "6d3700a24de763259abfb8d869015b51441236d9504183e612c08ac0e550d945",
        ),
        "train-00001-of-00004.tfrecord.gz": (
            2626,
            "5b898313a356ac761a27b1e9062e65e2f5e4094f213dd28c5200a417d35aed4e",
        ),
        "train-00002-of-00004.tfrecord.gz": (
            2625,
            "acd53603c44cfb41466e9c9edfd01b9102d9c1a2bf460de33d59132da91a4eac",
        ),
        "train-00003-of-00004.tfrecord.gz": (
            2625,
            "4787526f377d3293c07896aa2d717166745aeddc4650e8da1f80d67111578c9c",
        ),
        "eval-00000-of-00002.tfrecord.gz": (
            1125,
            "81e9e4a78d4f659664fb7b81a79afff803777e22cbc1a6919f4f9870143589a9",
        ),
        "eval-00001-of-00002.tfrecord.gz": (
            1125,
            "c396664edb08d114e87c99c55353b8dabf2b2e7b22d1c81e9d133b009b644fc5",
        ),
        "test-00000-of-00002.tfrecord.gz": (
            1125,
            "a5aa0e33f77fde84689bd3b6dcbb34f66f13f36580abe57545f6f4e0fc3cebfb",
        ),
        "test-00001-of-00002.tfrecord.gz": (
            1125,
            "f2b0d69315c292c7d8bdb3217dc816a56ee5df6b373610e658b188dd08ba3d75",
        ),
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    return {name: (root / name, catalog.make(name, root / name)) for name in EXPECTED}


@functools.cache
def examples(directory, split):
    import tensorflow as tf

    paths = sorted(map(str, directory.glob(f"{split}-*")))
    gzip = "GZIP" if paths[0].endswith(".gz") else ""
    records = tf.data.TFRecordDataset(paths, compression_type=gzip)
    return [tf.train.Example.FromString(record.numpy()) for record in records]


def value(example, name):
    """The only value of a feature, None where it is missing."""
    if name not in example.features.feature:
        return None
    feature = example.features.feature[name]
    (result,) = getattr(feature, feature.WhichOneof("kind")).value
    return result


def test_every_data_set_is_expected():
    packaged = [name for name in catalog.names() if not catalog.get(name).read]
    assert list(EXPECTED) == packaged


@pytest.mark.parametrize("name", EXPECTED)
def test_the_records_are_the_expected_ones(made, name):
    _, manifest = made[name]

    assert {
        shard.name: (shard.records, shard.records_sha256) for shard in manifest.shards
    } == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_second_make_gives_the_same_bytes(made, name, tmp_path):
    directory, manifest = made[name]

    assert catalog.make(name, tmp_path / name) == manifest
    for path in directory.iterdir():
        assert (tmp_path / name / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_truncated_shard_is_named(made, name, tmp_path):
    copy = shutil.copytree(made[name][0], tmp_path / name)
    shard = next(copy.glob("eval-00001-*"))
    shard.write_bytes(shard.read_bytes()[:-100])

    with pytest.raises(DataError, match="truncated") as caught:
        catalog.verify(copy)
    assert str(shard) in str(caught.value)


@pytest.mark.parametrize("name", EXPECTED)
def test_tensorflow_reads_every_record(made, name):
    directory, manifest = made[name]

    for split in ("train", "eval", "test"):
        read = examples(directory, split)
        assert len(read) == manifest.records(split)
        # Unknown fields would be kept, so this also tells that there are none.
        written = [
            record
            for path in sorted(directory.glob(f"{split}-*"))
            for record in tfrecord.read(path)
        ]
        assert [
            example.SerializeToString(deterministic=True) for example in read
        ] == written


def test_the_images_are_scikit_learns(made):
    import numpy as np
    import tensorflow as tf
    from sklearn.datasets import load_digits

    directory, _ = made["digits"]
    source = load_digits()
    levels = {
        image.astype(np.uint8).tobytes(): int(label)
        for image, label in zip(source.images, source.target, strict=True)
    }
    read = [
        example
        for split in ("train", "eval", "test")
        for example in examples(directory, split)
    ]
    found = {}
    for example in read:
        pixels = tf.io.decode_png(value(example, "image")).numpy()
        assert pixels.shape == (8, 8, 1)
        image = np.rint(pixels / 255 * 16)
        assert (np.abs(image / 16 * 255 - pixels) <= 0.5).all()
        found[image.astype(np.uint8).tobytes()] = value(example, "label")
    assert found == levels


def test_missing_cells_are_missing_and_the_tip_is_not_there(made):
    directory, _ = made["taxi"]
    with open(taxi._source(), newline="") as file:
        rows = list(csv.DictReader(file))
    filled = Counter(column for row in rows for column, cell in row.items() if cell)
    filled["big_tip"] = filled.pop("tips")

    found = Counter(
        name
        for split in ("train", "eval", "test")
        for example in examples(directory, split)
        for name in example.features.feature
    )
    assert found == filled
    assert found["company"] == 15002 - 5140


def test_the_label_is_exact_on_every_row():
    # 165 tips are 20 % to the cent, where floating point could decide either way.
    with open(taxi._source(), newline="") as file:
        rows = list(csv.DictReader(file))

    on_the_limit = [
        row for row in rows if 5 * Decimal(row["tips"]) == Decimal(row["fare"]) > 0
    ]
    assert len(on_the_limit) == 165
    for row in rows:
        exact = 5 * Decimal(row["tips"]) > Decimal(row["fare"])
        assert taxi.features(row)["big_tip"] == [int(exact)], row


def test_no_fare_means_no_big_tip():
    with open(taxi._source(), newline="") as file:
        free = [row for row in csv.DictReader(file) if float(row["fare"]) == 0]

    assert len(free) == 27
    assert {row["tips"] for row in free} == {"0", "0.0"}


@pytest.mark.parametrize(
    ("split", "counts"),
    [("train", (8113, 2389)), ("eval", (1729, 521)), ("test", (1786, 464))],
)
def test_both_classes_are_in_every_split(made, split, counts):
    directory, _ = made["taxi"]
    found = Counter(value(example, "big_tip") for example in examples(directory, split))

    assert (found[0], found[1]) == counts
