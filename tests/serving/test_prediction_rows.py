"""Input rows for prediction: detection of formats, errors."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

from serving.feature_values import FeatureType
from serving.prediction_rows import Row, read_rows
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

IMAGE = {"image": FeatureType("string")}
TABLE = {"miles": FeatureType("float32"), "payment": FeatureType("string")}
PNG = b"\x89PNG\r\n\x1a\n" + b"rest"
BITMAP = b"BM\x7a\x00\x00\x00\x00\x00\x00\x00rest"


def rows(*paths, features=TABLE):
    return list(read_rows(paths, features))


@pytest.fixture
def stdin(monkeypatch):
    def give(content: bytes):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    return give


@pytest.mark.parametrize("name", ["data", "data.gz"])
@pytest.mark.parametrize("size", [1, 123, 0x4D42, 35615])
def test_tfrecord_whatever_its_first_length_looks_like(tmp_path, name, size):
    """Lengths that begin with ``{``, ``BM`` and gzip's magic number."""
    records = [b"x" * size, b"second"]
    tfrecord.write(tmp_path / name, records)

    found = rows(tmp_path / name)

    assert [row.payload for row in found] == records
    assert [row.index for row in found] == [0, 1]
    assert found[1].source == str(tmp_path / name)
    assert found[1].where == f"{tmp_path / name}, record 2"


@pytest.mark.parametrize(
    "content", [PNG, b"\xff\xd8\xff\xe0\x00\x10JFIF", b"GIF89a..", b"GIF87a..", BITMAP]
)
def test_image_is_one_row_whatever_its_name(tmp_path, content):
    path = tmp_path / "image.jsonl"
    path.write_bytes(content * 1000)

    assert rows(path, features=IMAGE) == [
        Row(str(path), 0, str(path), {"image": content * 1000})
    ]


@pytest.mark.parametrize("features", [TABLE, {"miles": "float32"}])
def test_image_for_another_model_is_refused(tmp_path, features):
    (tmp_path / "x.png").write_bytes(PNG)

    with pytest.raises(UsageError, match=r"(?s)from an image file.*x\.png.*miles"):
        rows(tmp_path / "x.png", features=features)


def test_json_lines_skip_blank_ones_but_count_them(tmp_path):
    path = tmp_path / "in"
    path.write_bytes(
        b'\xef\xbb\xbf\r\n{"miles": 1}\r\n\n  {"miles": 2, "payment": "Cash"}'
    )

    first, second = rows(path)

    assert first.payload == {"miles": 1.0, "payment": b""}
    assert second.payload == {"miles": 2.0, "payment": b"Cash"}
    assert [first.index, second.index] == [0, 1]
    assert [first.where, second.where] == [f"{path}, line 2", f"{path}, line 4"]


@pytest.mark.parametrize(
    ("line", "actual"),
    [
        (b"[1, 2]", "a JSON array"),
        (b"null", "a JSON null"),
        (b'{"miles": 1', "Expecting"),
        (b'{"miles": \xff}', "can't decode"),
        (b'{"miles": ' + b"[" * 100_000, "recursion"),
    ],
)
def test_line_that_is_no_object_is_named(tmp_path, line, actual):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"miles": 1}\n\n' + line + b"\n")
    found = read_rows([path], TABLE)

    assert next(found).index == 0
    with pytest.raises(DataError, match="not a JSON object") as caught:
        next(found)
    assert caught.value.where == f"{path}, line 3"
    assert actual in str(caught.value.actual)


def test_stdin_is_json_lines(stdin):
    stdin(b'{"miles": 1}\n{"miles": 2}\n')

    found = rows("-", features={"miles": FeatureType("float32")})

    assert [row.payload for row in found] == [{"miles": 1.0}, {"miles": 2.0}]
    assert (found[1].source, found[1].where) == ("stdin", "stdin, line 2")


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_empty_stdin_is_refused(stdin, content):
    stdin(content)

    with pytest.raises(DataError, match=r"(?s)no JSON lines.*stdin"):
        rows("-")


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe"])
def test_path_that_is_no_file_is_refused_before_any_row(tmp_path, kind):
    (tmp_path / "good").write_text('{"miles": 1}')
    path = tmp_path / "it"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)

    with pytest.raises(UsageError, match=r"(?s)no such input file.*/it") as caught:
        next(read_rows([tmp_path / "good", path], TABLE))

    found = "nothing" if kind == "missing" else "a directory or a special file"
    assert caught.value.actual == found


def test_empty_file_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_bytes(b"")

    with pytest.raises(DataError, match=r"(?s)the file is empty.*empty\.jsonl"):
        rows(tmp_path / "empty.jsonl")


@pytest.mark.parametrize(
    "content", [b"BMW,1\n", b"miles,payment\n1,Cash\n", b'[{"miles": 1}]', b"\x89PN"]
)
def test_unknown_content_is_refused(tmp_path, content):
    (tmp_path / "it.png").write_bytes(content)

    with pytest.raises(DataError, match="not TFRecords, an image") as caught:
        rows(tmp_path / "it.png")

    assert caught.value.where == str(tmp_path / "it.png")
    assert repr(content[:12]) in str(caught.value.actual)


def test_damaged_tfrecord_is_named(tmp_path):
    path = tmp_path / "cut"
    tfrecord.write(path, [b"first", b"second"])
    path.write_bytes(path.read_bytes()[:-3])
    found = read_rows([path], TABLE)

    assert next(found).payload == b"first"
    with pytest.raises(DataError, match=r"(?s)ends within.*cut"):
        next(found)


@pytest.mark.parametrize(
    ("write", "place"),
    [
        (lambda path: tfrecord.write(path, [b"x", bytes(300)]), "record 2"),
        (lambda path: path.write_bytes(PNG + bytes(300)), "it"),
        (lambda path: path.write_text('{"miles": 1}\n{"x": "%s"}' % ("y" * 300)), "2"),
    ],
)
def test_a_row_beyond_the_limit_is_refused_by_name(tmp_path, write, place):
    path = tmp_path / "it"
    write(path)

    with pytest.raises(DataError, match="larger than the limit") as caught:
        list(read_rows([path], TABLE, max_row_bytes=200))

    assert str(path) in str(caught.value.where)
    assert place in str(caught.value.where)
    assert caught.value.expected == "at most 200 bytes"
