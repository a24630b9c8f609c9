"""MNIST's idx files: what is read is what was written, and damage is named."""

from __future__ import annotations

import gzip
import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sample_data import catalog
from sample_data.data_set import Source
from sample_data.image_array import ImageArray
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
    for prefix, count, write in (("train", 120, gzip.compress), ("t10k", 20, bytes)):
        suffix = ".gz" if write is gzip.compress else ""
        images = generator.integers(0, 256, (count, 28, 28), np.uint8)
        labels = np.arange(count, dtype=np.uint8) % 10
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = tmp_path / f"{prefix}-{name}-ubyte{suffix}"
            path.write_bytes(write(idx(array)))
    return tmp_path


def change(path, change_content):
    """Rewrites a file of idx values, compressed or not."""
    is_gzip = path.suffix == ".gz"
    content = gzip.decompress(path.read_bytes()) if is_gzip else path.read_bytes()
    content = change_content(content)
    path.write_bytes(gzip.compress(content) if is_gzip else content)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(
        lambda shape: st.tuples(
            st.just(tuple(shape)),
            st.binary(min_size=int(np.prod(shape)), max_size=int(np.prod(shape))),
        )
    ),
    st.booleans(),
)
def test_what_is_read_is_what_was_written(tmp_path_factory, drawn, compressed):
    shape, content = drawn
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
        source = content.parts[part]
        assert isinstance(source, ImageArray)
        expected = sorted(
            (pixels.tobytes(), int(label))
            for pixels, label in zip(source.pixels, source.labels, strict=True)
        )
        found = []
        for shard in made.shards:
            if shard.split in splits:
                for record in tfrecord.read(tmp_path / "made" / shard.name):
                    features = parse(record).features.feature
                    (image,) = features["image"].bytes_list.value
                    (label,) = features["label"].int64_list.value
                    pixels = np.asarray(Image.open(io.BytesIO(image)))
                    assert pixels.shape == (28, 28)
                    found.append((pixels.tobytes(), label))
        assert sorted(found) == expected


def test_without_gz_and_with_a_point_in_the_name(folder):
    train = folder / "train-images-idx3-ubyte.gz"
    other = folder / "train-images.idx3-ubyte"
    other.write_bytes(gzip.decompress(train.read_bytes()))
    with pytest.raises(UsageError, match="exists more than once") as caught:
        read_mnist(Source(folder), DIGITS)
    assert caught.value.examples == (train.name, other.name)

    train.unlink()
    assert len(read_mnist(Source(folder), DIGITS).parts["train"]) == 120


@pytest.mark.parametrize(
    ("file", "edit", "words", "actual"),
    [
        (
            "train-images-idx3-ubyte.gz",
            lambda content: b"\0\0\x0d" + content[3:],
            "not an idx file",
            "the first bytes 00 00 0d 03",
        ),
        (
            "t10k-labels-idx1-ubyte",
            lambda content: b"",
            "not an idx file",
            "the first bytes (none)",
        ),
        (
            "t10k-images-idx3-ubyte",
            lambda content: content[:4] + b"\xff" * 12,
            "not an idx file",
            f"{(2**32 - 1) ** 3:,} values in the header",
        ),
        (
            "train-images-idx3-ubyte.gz",
            lambda content: content[:-1],
            "length of this idx file",
            "94,079",
        ),
        (
            "t10k-labels-idx1-ubyte",
            lambda content: content + b"x",
            "length of this",
            "more",
        ),
        (
            "train-images-idx3-ubyte.gz",
            lambda content: idx(np.zeros((120, 8, 8), np.uint8)),
            "another size",
            "8 x 8",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            lambda content: idx(np.zeros(119, np.uint8)),
            "numbers of images and labels differ",
            "119 labels",
        ),
        (
            "t10k-labels-idx1-ubyte",
            lambda content: content[:-1] + b"\x0a",
            "not the number of a class",
            "10",
        ),
    ],
)
def test_a_bad_file_is_named(folder, tmp_path, file, edit, words, actual):
    change(folder / file, edit)
    target = tmp_path / "made"
    with pytest.raises(DataError, match=words) as caught:
        catalog.make("mnist", target, source=Source(folder))

    assert str(caught.value.where).startswith(str(folder / file))
    assert caught.value.actual == actual
    assert not target.exists()


def test_a_truncated_gzip_file(folder):
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(DataError, match="gzip file is truncated") as caught:
        read_mnist(Source(folder), DIGITS)
    assert caught.value.where == str(path)


def test_a_missing_file(folder):
    (folder / "t10k-labels-idx1-ubyte").unlink()

    with pytest.raises(UsageError, match="a file is missing") as caught:
        read_mnist(Source(folder), DIGITS)
    expected = "t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz"
    assert caught.value.expected == expected
