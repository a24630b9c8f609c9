"""MNIST's idx files: what is read is what was written, and damage is named."""

import gzip
import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sample_data import catalog
from sample_data.data_set import Source
from sample_data.mnist import read_idx, read_mnist
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

DIGITS = tuple("0123456789")


def idx(array):
    """The content of an idx file of unsigned bytes."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture
def folder(tmp_path):
    """A small MNIST; the two files of its test split are not compressed."""
    generator = np.random.default_rng(5)
    for prefix, count, suffix in (("train", 120, ".gz"), ("t10k", 20, "")):
        images = generator.integers(0, 256, (count, 28, 28), np.uint8)
        labels = np.arange(count, dtype=np.uint8) % 10
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = tmp_path / f"{prefix}-{name}-ubyte{suffix}"
            path.write_bytes(gzip.compress(idx(array)) if suffix else idx(array))
    return tmp_path


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data(), st.booleans())
def test_what_is_read_is_what_was_written(tmp_path_factory, shape, data, compressed):
    size = int(np.prod(shape))
    content = data.draw(st.binary(min_size=size, max_size=size))
    array = np.frombuffer(content, np.uint8).reshape(shape)
    path = tmp_path_factory.mktemp("idx") / "values"
    path.write_bytes(gzip.compress(idx(array)) if compressed else idx(array))
    assert np.array_equal(read_idx(path, array.ndim), array)


def test_the_records_are_the_images_and_labels_of_the_files(folder, tmp_path):
    content = read_mnist(Source(folder), DIGITS)
    made = catalog.make("mnist", tmp_path / "made", source=Source(folder))
    assert made.class_names == DIGITS
    assert [made.records(split) for split in ("train", "eval", "test")] == [110, 10, 20]
    for part, splits in (("train", ("train", "eval")), ("test", ("test",))):
        source: Any = content.parts[part]
        found = []
        for shard in (item for item in made.shards if item.split in splits):
            for record in tfrecord.read(tmp_path / "made" / shard.name):
                features = parse(record).features.feature
                (image,) = features["image"].bytes_list.value
                (label,) = features["label"].int64_list.value
                found.append((Image.open(io.BytesIO(image)).tobytes(), label))
        assert sorted(found) == sorted(
            (pixels.tobytes(), int(label))
            for pixels, label in zip(source.pixels, source.labels, strict=True)
        )


def compressed(change):
    return lambda content: gzip.compress(change(gzip.decompress(content)))


TRAIN, LABELS = "train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("file", "change", "words", "actual"),
    [
        (TRAIN, lambda x: x[:-20], "gzip file is truncated", None),
        (
            TRAIN,
            compressed(lambda x: b"\0\0\x0d" + x[3:]),
            "not an idx file",
            "the first bytes 00 00 0d 03",
        ),
        (LABELS, lambda x: b"", "not an idx file", "the first bytes (none)"),
        (
            "t10k-images-idx3-ubyte",
            lambda x: x[:4] + b"\xff" * 12,
            "not an idx file",
            f"{(2**32 - 1) ** 3:,} values in the header",
        ),
        (TRAIN, compressed(lambda x: x[:-1]), "length of this idx file", "94,079"),
        (LABELS, lambda x: x + b"x", "length of this", "more"),
        (
            TRAIN,
            compressed(lambda x: idx(np.zeros((120, 8, 8), np.uint8))),
            "another size",
            "8 x 8",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            compressed(lambda x: idx(np.zeros(119, np.uint8))),
            "numbers of images and labels differ",
            "119 labels",
        ),
        (LABELS, lambda x: x[:-1] + b"\x0a", "not the number of a class", "10"),
    ],
)
def test_a_bad_file_is_named(folder, tmp_path, file, change, words, actual):
    path = folder / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=words) as caught:
        catalog.make("mnist", tmp_path / "made", source=Source(folder))
    assert str(caught.value.where).startswith(str(path))
    assert actual is None or caught.value.actual == actual
    assert not (tmp_path / "made").exists()


def test_a_missing_file(folder):
    (folder / LABELS).unlink()
    with pytest.raises(UsageError, match="a file is missing") as caught:
        read_mnist(Source(folder), DIGITS)
    assert caught.value.expected == f"{LABELS} or {LABELS}.gz"
