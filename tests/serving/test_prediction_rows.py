"""Input rows for prediction: detection of formats, errors."""

import json
import math

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sample_data.tf_example import encode
from serving.prediction_rows import Row, read_rows
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

TABLE = {"miles": "float_list", "payment": "bytes_list", "kind/1": "int64_list"}
PNG = b"\x89PNG\r\n\x1a\n" + b"rest"
BITMAP = b"BM\x7a\x00\x00\x00\x00\x00\x00\x00rest"


def rows(*paths, features=TABLE, **options):
    return list(read_rows(paths, features, **options))


@pytest.mark.parametrize("name", ["data", "data.gz"])
@pytest.mark.parametrize("size", [1, 123, 0x4D42, 35615])
def test_tfrecord_whatever_its_first_length_looks_like(tmp_path, name, size):
    """Lengths that begin with ``{``, ``BM`` and gzip's magic number."""
    records = [b"x" * size, b"second"]
    tfrecord.write(tmp_path / name, records)

    found = rows(tmp_path / name)

    assert [row.payload for row in found] == records
    assert [row.index for row in found] == [0, 1]
    assert found[1].where == f"{tmp_path / name}, record 2"


@pytest.mark.parametrize(
    "content", [PNG, b"\xff\xd8\xff\xe0\x00\x10JFIF", b"GIF89a..", b"GIF87a..", BITMAP]
)
def test_image_is_one_row_whatever_its_name(tmp_path, content):
    path = tmp_path / "image.jsonl"
    path.write_bytes(content * 1000)

    assert rows(path, features={"image": "bytes_list"}) == [
        Row(str(path), 0, str(path), {"image": content * 1000})
    ]


def test_rows_of_a_table_have_the_types_of_the_model(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("payment,miles,extra\n007,2,x\n,3,y\n")

    first, second = rows(path)

    assert first.values() == {"payment": b"007", "miles": 2.0, "extra": b"x"}
    assert second.values() == {"miles": 3.0, "extra": b"y"}
    assert (second.index, second.where) == (1, f"{path}, row 2")
    path.write_text("miles\n1\nfar\n")
    with pytest.raises(DataError, match=r"(?s)'miles'.*not a number.*row 2"):
        rows(path)


def test_image_for_a_model_of_a_table_is_refused(tmp_path):
    (tmp_path / "x.png").write_bytes(PNG)

    with pytest.raises(UsageError, match=r"(?s)from an image file.*miles.*x\.png"):
        rows(tmp_path / "x.png")


def test_json_lines_skip_blank_ones_but_count_them(tmp_path):
    path = tmp_path / "in"
    path.write_bytes(
        b'\xef\xbb\xbf\r\n{"miles": 1}\r\n\n  {"payment": {"b64": "iVBO"}}'
    )

    first, second = rows(path)

    assert (first.payload, second.payload) == ({"miles": 1}, {"payment": b"\x89PN"})
    assert [first.index, second.index] == [0, 1]
    assert [first.where, second.where] == [f"{path}, line 2", f"{path}, line 4"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[1, 2]", "not a JSON object"),
        (b'{"miles": 1', "Expecting"),
        (b'{"miles": 1e400}', "1e400 is beyond 64 bits"),
        (b'{"miles": \xff}', "can't decode"),
        (b'{"payment": {"b64": "%"}}', "not JSON: "),
        (b'{"payments": "Cash"}', "did you mean 'payment'"),
        (b'{"miles": "' + b"x" * 999 + b'"}', "200"),
    ],
)
def test_a_bad_line_is_named_after_the_rows_before_it(tmp_path, line, words):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"miles": 1}\n\n' + line + b"\n")
    found = read_rows([path], TABLE, 200 if b"xx" in line else 1 << 20)

    assert next(found).index == 0
    with pytest.raises(DataError) as caught:
        next(found)
    assert caught.value.where == f"{path}, line 3"
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"BMW,1\n", "not TFRecords, Parquet, CSV, an image or JSON lines"),
    ],
)
def test_other_content_is_refused(tmp_path, content, words):
    (tmp_path / "it").write_bytes(content)

    with pytest.raises(DataError, match=rf"(?s){words}.*/it"):
        rows(tmp_path / "it")


BIG = 2**63 - 1


@pytest.mark.parametrize(
    ("in_json", "in_record", "expected"),
    [
        (BIG, BIG, BIG),
        (-(2**53) - 1, -(2**53) - 1, -(2**53) - 1),
        ("é,\n7", "é,\n7".encode(), "é,\n7"),
        ({"b64": "/w=="}, b"\xff", b"\xff"),
        (0, 0, 0),
        (0.5, 0.5, 0.5),
    ],
)
def test_ids_are_exact(tmp_path, in_json, in_record, expected):
    paths = [tmp_path / "lines", tmp_path / "records"]
    paths[0].write_text(json.dumps({"order": in_json, "miles": 1}))
    tfrecord.write(paths[1], [encode({"order": [in_record]})])
    found = [row.id for row in rows(*paths, id_feature="order")]
    assert found == [expected, expected]
    assert [type(value) for value in found] == [type(expected)] * 2


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_ids_of_tables_are_exact_or_refused(tmp_path, name):
    """Found: ids near 10^9 in a column of floats were one and the same."""

    def ids(*values):
        table = pa.table({"order": [*values], "miles": [1.0] * len(values)})
        path = tmp_path / name
        write = csv.write_csv if name.endswith("csv") else parquet.write_table
        write(table, path)
        return [row.id for row in rows(path, id_feature="order")]

    large = 2**53 + 1
    assert ids(large, large + 2) == [large, large + 2]
    assert ids("é", "7") == ["é", "7"]
    with pytest.raises(DataError, match="write them as whole numbers or text"):
        ids(1002345671.0, 1002345672.5)


@pytest.mark.parametrize("value", [None, "", math.nan, [1, 2], {"a": 1}, []])
def test_a_row_without_one_id_is_named_after_the_rows_before_it(tmp_path, value):
    lines, records = tmp_path / "lines", tmp_path / "records"
    lines.write_text(f'{{"order": 1}}\n{json.dumps({"order": value})}\n')
    tfrecord.write(records, [encode({"order": [1]}), encode({"order": [1, 2]})])
    places = {lines: "line 2", records: "record 2"}
    for path, place in places.items():
        found = read_rows([path], TABLE, id_feature="order")
        assert next(found).id == 1
        with pytest.raises(DataError, match="in 'order' that identifies it") as caught:
            next(found)
        assert caught.value.where == f"{path}, {place}"
