"""CIFAR-10's archives: both forms give the same images, and no pickle runs anything."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_data import cifar10_pickle
from sample_data.cifar10 import parse_python, read_cifar10
from sample_data.data_set import Source
from sluice.errors import DataError, UsageError

pytestmark = pytest.mark.unit

BATCHES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
ROWS = 4


def batch(number):
    """Pixels in planes, and labels."""
    generator = np.random.default_rng(number)
    pixels = generator.integers(0, 256, (ROWS, 3072), np.uint8)
    return pixels, generator.integers(0, 10, ROWS)


def binary(number):
    pixels, labels = batch(number)
    return np.hstack([labels[:, None].astype(np.uint8), pixels]).tobytes()


def pickled(number, protocol=2):
    pixels, labels = batch(number)
    fields = {
        b"batch_label": b"training batch",
        b"labels": labels.tolist(),
        b"data": pixels,
        b"filenames": [f"{name}.png".encode() for name in range(ROWS)],
    }
    return pickle.dumps(fields, protocol)


def add(archive, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def write_archive(path, contents):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents:
            add(archive, name, content)
    return path


@pytest.fixture
def binary_archive(tmp_path):
    contents = [
        (f"cifar-10-batches-bin/{name}.bin", binary(number))
        for number, name in enumerate(BATCHES)
    ]
    contents.append(("cifar-10-batches-bin/readme.html", b"<html>"))
    return write_archive(tmp_path / "cifar-10-binary.tar.gz", contents)


@pytest.fixture
def python_archive(tmp_path):
    contents = [
        (f"cifar-10-batches-py/{name}", pickled(number))
        for number, name in enumerate(BATCHES)
    ]
    return write_archive(tmp_path / "cifar-10-python.tar.gz", contents)


def check(content):
    for part, numbers in (("train", range(5)), ("test", [5])):
        planes, labels = zip(*map(batch, numbers), strict=True)
        images = np.concatenate(planes).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        assert np.array_equal(content.parts[part].pixels, images)
        assert np.array_equal(content.parts[part].labels, np.concatenate(labels))
    assert content.class_names[0] == "airplane"


def test_the_binary_archive(binary_archive):
    content = read_cifar10(Source(binary_archive.parent))

    check(content)
    assert content.files == (binary_archive,)


def test_the_python_archive(python_archive):
    check(read_cifar10(Source(python_archive)))


@pytest.mark.parametrize("form", ["binary_archive", "python_archive"])
def test_an_unpacked_archive(form, request, tmp_path):
    archive = request.getfixturevalue(form)
    with tarfile.open(archive) as members:
        members.extractall(tmp_path / "unpacked", filter="data")
    archive.unlink()

    check(read_cifar10(Source(tmp_path / "unpacked")))
    (folder,) = (tmp_path / "unpacked").iterdir()
    check(read_cifar10(Source(folder)))


@pytest.mark.parametrize("protocol", range(5))
def test_every_protocol_is_read(protocol):
    pixels, labels = batch(0)
    content = {"data": pixels, "labels": labels.tolist()}
    found, numbers = cifar10_pickle.load_batch(pickle.dumps(content, protocol))

    assert (found, numbers) == (pixels.tobytes(), labels.tolist())


def test_a_pickle_of_python_2():
    """As the published archive has them: numpy.core, and strings that are bytes."""
    row = b"\x07" * 3072
    content = (
        b"\x80\x02}(U\x06labelsq\x01]q\x02K\x03aU\x04dataq\x03"
        b"cnumpy.core.multiarray\n_reconstruct\nq\x04cnumpy\nndarray\nq\x05"
        b"K\x00\x85U\x01b\x87Rq\x06(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nq\x07"
        b"U\x02u1K\x00K\x01\x87Rq\x08(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
        b"K\x00tb\x89T" + struct.pack("<i", len(row)) + row + b"tbu."
    )

    assert cifar10_pickle.load_batch(content) == (row, [3])


class Hostile:
    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def hostile_pickles(marker):
    """Pickles that would write the file ``marker`` if they could run anything."""
    command = f"touch {marker}"
    text = f"open({str(marker)!r}, 'w')"
    yield pickle.dumps(Hostile(os.system, command))
    yield pickle.dumps({"labels": [1], "data": Hostile(os.system, command)})
    yield pickle.dumps(Hostile(eval, text), 0)
    yield pickle.dumps(Hostile(exec, text), 4)
    yield b"(S'" + command.encode() + b"'\nios\nsystem\n."
    yield b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'tofile'\ntR."
    yield b"cnumpy\nload\n(S'" + str(marker).encode() + b"'\ntR."
    # Through a name of two parts, below a module that is admitted.
    yield b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.tofile\x93."
    yield b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR."
    # The memo's number would take 64 GiB in the unpickler that is written in C.
    yield b"\x80\x02]r\xff\xff\xff\x7f."


def test_a_hostile_pickle_runs_nothing(tmp_path):
    marker = tmp_path / "run"
    pickles = list(hostile_pickles(marker))
    for content in pickles:
        with pytest.raises(DataError, match="not a Python batch of CIFAR-10") as caught:
            parse_python(content, tmp_path / "data_batch_1")
        assert caught.value.where == str(tmp_path / "data_batch_1")
    assert not marker.exists()

    # The first of them does run where anything is admitted.
    pickle.loads(pickles[0])
    assert marker.exists()


@pytest.mark.parametrize(
    ("fields", "actual"),
    [
        ([1, 2], "a list"),
        ({"data": np.zeros((1, 3072), np.uint8)}, "'labels' is not a list of integers"),
        ({"labels": [True], "data": 1}, "'labels' is not a list of integers"),
        ({"labels": [], "data": 1}, "0 labels"),
        ({"labels": [2**70], "data": 1}, "not the number of a class"),
        ({"labels": [1], "data": b"x"}, "'data' is not an array"),
        ({"labels": [1], "data": np.zeros((1, 3072))}, "an array of 'f8', not of"),
        ({"labels": [1], "data": np.zeros((1, 8), np.uint8)}, "the shape (1, 8), not"),
        ({"labels": [1] * 2, "data": np.zeros((1, 3072), np.uint8)}, "the shape"),
        (
            {"labels": [1], "data": np.array([object], object)},
            "the name __builtin__.object is not allowed",
        ),
    ],
)
def test_a_pickle_that_is_no_batch(tmp_path, fields, actual):
    with pytest.raises(DataError) as caught:
        parse_python(pickle.dumps(fields, 2), tmp_path)
    assert actual in str(caught.value.actual)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_error_of_data(content):
    with pytest.raises(cifar10_pickle.NoBatchError):
        cifar10_pickle.load_batch(b"\x80\x02" + content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a binary batch"),
        (b"\0" * 3072, "not a binary batch"),
        (b"\0" * 3073 + b"\x0a" + b"\0" * 3072, "label of image 2 is not the number"),
    ],
)
def test_a_bad_binary_batch_is_named(tmp_path, content, words):
    for number, name in enumerate(BATCHES):
        tmp_path.joinpath(f"{name}.bin").write_bytes(binary(number))
    bad = tmp_path / "data_batch_3.bin"
    bad.write_bytes(content)

    with pytest.raises(DataError, match=words) as caught:
        read_cifar10(Source(tmp_path))
    assert caught.value.where == str(bad)


def test_a_missing_batch(tmp_path):
    tmp_path.joinpath("test_batch.bin").write_bytes(binary(5))

    with pytest.raises(DataError, match="Batches are missing") as caught:
        read_cifar10(Source(tmp_path))
    assert caught.value.examples[:2] == ("data_batch_1.bin", "data_batch_2.bin")


def test_a_batch_that_is_there_twice(tmp_path):
    contents = [("a/test_batch.bin", binary(5)), ("b/test_batch.bin", binary(4))]
    archive = write_archive(tmp_path / "cifar-10-binary.tar.gz", contents)

    with pytest.raises(DataError, match="in the archive twice") as caught:
        read_cifar10(Source(tmp_path))
    assert caught.value.where == str(archive / "test_batch.bin")


def test_a_link_in_the_archive(tmp_path):
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("x/data_batch_1.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)

    with pytest.raises(DataError, match="This batch is a link"):
        read_cifar10(Source(tmp_path))


@pytest.mark.parametrize("kept", [0, 30, 0.5, -1])
def test_a_truncated_archive(binary_archive, kept):
    content = binary_archive.read_bytes()
    kept = int(len(content) * kept) if isinstance(kept, float) else kept
    # The end of a gzip file, its checksum, is read in a whole one too.
    binary_archive.write_bytes(content[:kept] if kept >= 0 else content[: kept - 20000])

    with pytest.raises(DataError, match="truncated or corrupt") as caught:
        read_cifar10(Source(binary_archive))
    assert caught.value.where == str(binary_archive)


def test_nothing_there(tmp_path):
    with pytest.raises(UsageError, match="no copy of CIFAR-10") as caught:
        read_cifar10(Source(tmp_path))
    assert "cifar-10-binary.tar.gz" in str(caught.value.expected)
