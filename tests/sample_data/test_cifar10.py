"""CIFAR-10's archives: both forms give the same images, and no pickle runs anything."""

import io
import os
import pickle
import struct
import tarfile
from typing import Any

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
    fields = {b"batch_label": b"x", b"labels": labels.tolist(), b"data": pixels}
    return pickle.dumps(fields, protocol)


FORMS: dict[str, Any] = {
    "binary": ("cifar-10-batches-bin", ".bin", binary),
    "python": ("cifar-10-batches-py", "", pickled),
}


def write_archive(path, contents, link=None):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    return path


def write(form, folder):
    """Writes one of the two published archives."""
    top, suffix, make = FORMS[form]
    contents = {f"{top}/{x}{suffix}": make(n) for n, x in enumerate(BATCHES)}
    contents[f"{top}/readme.html"] = b"<html>"
    return write_archive(folder / f"cifar-10-{form}.tar.gz", contents)


def check(content):
    for part, numbers in (("train", range(5)), ("test", [5])):
        planes, labels = zip(*map(batch, numbers), strict=True)
        images = np.concatenate(planes).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        assert np.array_equal(content.parts[part].pixels, images)
        assert np.array_equal(content.parts[part].labels, np.concatenate(labels))
    assert content.class_names[0] == "airplane"


@pytest.mark.parametrize("form", ["binary", "python"])
def test_an_archive_packed_and_unpacked(form, tmp_path):
    archive = write(form, tmp_path)
    check(read_cifar10(Source(archive)))
    content = read_cifar10(Source(tmp_path))
    check(content)
    assert content.files == (archive,)
    with tarfile.open(archive) as members:
        members.extractall(tmp_path / "unpacked", filter="data")
    check(read_cifar10(Source(tmp_path / "unpacked")))
    check(read_cifar10(Source(tmp_path / "unpacked" / FORMS[form][0])))


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
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def test_a_hostile_pickle_runs_nothing(tmp_path):
    marker, path = tmp_path / "run", tmp_path / "data_batch_1"
    hostile = pickle.dumps({"labels": [1], "data": Hostile(marker)})
    others = [
        b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'tofile'\ntR.",
        # Through a name of two parts, below a module that is admitted.
        b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.tofile\x93.",
        # The memo's number would take 64 GiB in the unpickler that is written in C.
        b"\x80\x02]r\xff\xff\xff\x7f.",
    ]
    for content in (hostile, *others):
        with pytest.raises(DataError, match="not a Python batch of CIFAR-10") as caught:
            parse_python(content, path)
        assert caught.value.where == str(path)
    assert not marker.exists()
    # It does run where anything is admitted.
    pickle.loads(hostile)
    assert marker.exists()


@pytest.mark.parametrize(
    ("fields", "actual"),
    [
        ([1, 2], "a list"),
        ({"labels": [True], "data": 1}, "'labels' is not a list of integers"),
        ({"labels": [], "data": 1}, "0 labels"),
        ({"labels": [2**70], "data": 1}, "not the number of a class"),
        ({"labels": [1], "data": b"x"}, "'data' is not an array"),
        ({"labels": [1], "data": np.zeros((1, 3072))}, "an array of 'f8', not of"),
        ({"labels": [1], "data": np.zeros((1, 8), np.uint8)}, "the shape (1, 8), not"),
        ({"labels": [1] * 2, "data": np.zeros((1, 3072), np.uint8)}, "the shape"),
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
        (None, "Batches are missing"),
    ],
)
def test_a_bad_binary_batch_is_named(tmp_path, content, words):
    for number, name in enumerate(BATCHES):
        tmp_path.joinpath(f"{name}.bin").write_bytes(binary(number))
    bad = tmp_path / "data_batch_3.bin"
    bad.unlink() if content is None else bad.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        read_cifar10(Source(tmp_path))
    assert str(bad.name) in str(caught.value)


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_a_truncated_archive(tmp_path, kept):
    archive = write("binary", tmp_path)
    content = archive.read_bytes()
    archive.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(DataError, match="truncated or corrupt") as caught:
        read_cifar10(Source(archive))
    assert caught.value.where == str(archive)


def test_a_bad_archive_is_named(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    with pytest.raises(UsageError, match="no copy of CIFAR-10") as caught:
        read_cifar10(Source(tmp_path))
    assert path.name in str(caught.value.expected)
    write_archive(path, {"a/test_batch.bin": binary(5), "b/test_batch.bin": binary(4)})
    with pytest.raises(DataError, match="in the archive twice"):
        read_cifar10(Source(tmp_path))
    write_archive(path, {}, link="x/data_batch_1.bin")
    with pytest.raises(DataError, match="This batch is a link"):
        read_cifar10(Source(tmp_path))
