"""The records of the real data sets, as read by TensorFlow."""

import csv
import functools
import gzip
import hashlib
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import tfx

from sample_data import catalog, csv_files
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

# Records per shard, and the digest of the digests of their records. Where one changes,
# raise the data set's version.
EXPECTED = {
    "digits": (
        [300] * 4 + [149, 148, 150, 150],
        "d4177105c4df48e65d7c7906cc3a0d55e5b6379ef3f6bf891eb05aeef75f0457",
    ),
    "taxi": (
        [2626, 2626, 2625, 2625] + [1125] * 4,
        "db851cc7d21738b8f5abcb628c3168ffa4e5e2ceb1b0b2c28290f8dbc3979e20",
    ),
    "diabetes": (
        [155, 155, 66, 66],
        "8619560edddd555ac8cb72342ff9d43e39a7c0de0f448cfd3c5c25f360406c00",
    ),
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


def records_digest(path):
    """Digest of the records, each after its length; independent of compression."""
    digest = hashlib.sha256()
    for record in tfrecord.read(path):
        digest.update(len(record).to_bytes(8, "little") + record)
    return digest.hexdigest()


def value(example, name):
    """The only value of a feature, None where it is missing."""
    if name not in example.features.feature:
        return None
    feature = example.features.feature[name]
    (result,) = getattr(feature, feature.WhichOneof("kind")).value
    return result


@pytest.mark.parametrize("name", EXPECTED)
def test_the_records_are_the_expected_ones(made, name, tmp_path):
    directory, manifest = made[name]
    counts, digest = EXPECTED[name]
    assert [shard.records for shard in manifest.shards] == counts
    digests = [records_digest(directory / shard.name) for shard in manifest.shards]
    assert hashlib.sha256("".join(digests).encode()).hexdigest() == digest
    # A second make gives the same bytes.
    assert catalog.make(name, tmp_path / name) == manifest
    for path in directory.iterdir():
        assert (tmp_path / name / path.name).read_bytes() == path.read_bytes()


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


def test_the_patients_are_scikit_learns(made):
    from sklearn.datasets import load_diabetes

    source = load_diabetes(scaled=False)
    wanted = sorted([*x, y] for x, y in zip(source.data, source.target, strict=True))
    names = [*source.feature_names, "progression"]
    found = [
        [float(value(example, name)) for name in names]
        for split in ("train", "eval", "test")
        for example in examples(made["diabetes"][0], split)
    ]
    assert np.allclose(sorted(found), wanted, rtol=1e-5)


def test_the_images_are_scikit_learns(made):
    import tensorflow as tf
    from sklearn.datasets import load_digits

    source, found = load_digits(), {}
    for split in ("train", "eval", "test"):
        for example in examples(made["digits"][0], split):
            pixels = tf.io.decode_png(value(example, "image")).numpy()
            image = np.rint(pixels / 255 * 16)
            assert (np.abs(image / 16 * 255 - pixels) <= 0.5).all()
            found[image.astype(np.uint8).tobytes()] = value(example, "label")
    assert found == {
        image.astype(np.uint8).tobytes(): int(label)
        for image, label in zip(source.images, source.target, strict=True)
    }


def source_rows():
    (folder,) = tfx.__path__
    with open(Path(folder).parent / csv_files._TAXI, newline="") as file:
        return list(csv.DictReader(file))


def test_missing_cells_are_missing_and_the_tip_is_not_there(made):
    directory, _ = made["taxi"]
    rows = source_rows()
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
    rows = source_rows()
    on_the_limit = 0
    for row in rows:
        fare, tips = Decimal(row["fare"]), Decimal(row["tips"])
        on_the_limit += 5 * tips == fare > 0
        assert csv_files.big_tip(float(fare), float(tips)) == (5 * tips > fare), row
        assert fare or not tips
    assert on_the_limit == 165


FASHION = Path("/usr/share/datasets/fashion-mnist")


def published(name, header_bytes):
    packed = FASHION / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.is_file() else b""
    return np.frombuffer(
        data or (FASHION / name).read_bytes(), np.uint8, offset=header_bytes
    )


@pytest.mark.acceptance
@pytest.mark.real_data
@pytest.mark.skipif(
    not FASHION.is_dir(), reason="apt-get install dataset-fashion-mnist"
)
def test_fashion_mnist_has_the_published_images_and_labels(tmp_path):
    import tensorflow as tf

    made = catalog.make("fashion-mnist", tmp_path / "made", source=FASHION)
    counts = {"train": 55_000, "eval": 5_000, "test": 10_000}
    assert {split: made.records(split) for split in counts} == counts
    assert made.class_names[9] == "Ankle boot"
    assert records_digest(tmp_path / "made" / made.shards[0].name) == (
        "47120371af5fdf0f02d22fbde43dc5cdf40d376d2c3e63788f10a1274ba7f7a1"
    )
    for prefix, splits in (("train", ("train", "eval")), ("t10k", ("test",))):
        found = Counter(
            (
                tf.io.decode_png(value(item, "image")).numpy().tobytes(),
                value(item, "label"),
            )
            for split in splits
            for item in examples(tmp_path / "made", split)
        )
        pixels = published(f"{prefix}-images-idx3-ubyte", 16).reshape(-1, 28 * 28)
        labels = published(f"{prefix}-labels-idx1-ubyte", 8)
        assert found == Counter(zip(map(bytes, pixels), map(int, labels), strict=True))
