"""Parquet and CSV files: types, bad rows, and files whose types differ."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import math
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from components.tfrecord_gen.settings import HashSplits, ImageCheck
from sample_data.tf_example import encode
from sluice.errors import DataError
from sluice.tfrecords.parse_tf_example import parse, values_of

pytestmark = pytest.mark.unit


def parquet_bytes(table, **options):
    file = io.BytesIO()
    parquet.write_table(table, file, **options)
    return file.getvalue()


def features_of(record):
    features = parse(record).features.feature
    return {name: list(values_of(feature)) for name, feature in features.items()}


def no_ids(value):
    """Files are no names of tests."""
    return "" if isinstance(value, bytes) else None


def column(*values, of=None, name="x", **options):
    """A Parquet file with a column, and one that numbers its rows."""
    numbers = pa.array(range(len(values)), pa.int64())
    array = values[0] if isinstance(values[0], pa.Array) else pa.array(values, of)
    if array is values[0]:
        numbers = pa.array(range(len(array)), pa.int64())
    return parquet_bytes(pa.table({name: array, "row": numbers}), **options)


NOON = datetime.datetime(1969, 12, 31, 23, 59, 58, 500_000)
HALF_DAY = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.timezone.utc)
NOON_S = int(HALF_DAY.timestamp())
DAY = NOON_S // 86_400
LAST_DAY = datetime.datetime(9999, 12, 31)
TWICE = datetime.datetime(2024, 10, 27, 0, 30, tzinfo=datetime.timezone.utc)
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (column(-5, None, of=pa.int8()), [[-5], None]),
        (column(2**63 - 1, -(2**63)), [[2**63 - 1], [-(2**63)]]),
        (column(200, of=pa.uint8()), [[200]]),
        (column(2**63 - 1, None, of=pa.uint64()), [[2**63 - 1], None]),
        (column(True, False, None), [[1], [0], None]),
        (column(0.5, math.inf, None), [[0.5], [math.inf], None]),
        (column(0.25, of=pa.float32()), [[0.25]]),
        (column(decimal.Decimal("12.50"), None), [[12.5], None]),
        (column(decimal.Decimal(2**53 + 1), None), [[2**53 + 1], None]),
        (column(NOON, None, of=pa.timestamp("us")), [[-2], None]),
        (column(HALF_DAY, of=pa.timestamp("us", "Europe/Berlin")), [[NOON_S]]),
        # As Spark writes it; and an hour that there is twice in local time.
        (column(LAST_DAY, use_deprecated_int96_timestamps=True), [[253_402_214_400]]),
        (column(TWICE, of=pa.timestamp("ms", "Europe/Berlin")), [[1_729_989_000]]),
        (column(HALF_DAY, of=pa.timestamp("ns", "UTC")), [[NOON_S]]),
        (column(HALF_DAY.date(), None), [[DAY * 86_400], None]),
        (column("é", "", None), [["é".encode()], [b""], None]),
        (column(b"\xff", of=pa.binary()), [[b"\xff"]]),
        (column(b"ab", of=pa.binary(2)), [[b"ab"]]),
        (column("a", of=pa.large_string()), [[b"a"]]),
        (column([1, 2], [], None), [[1, 2], [], None]),
        (column([0.5, 1.0], of=pa.list_(pa.float64(), 2)), [[0.5, 1.0]]),
        (column(None, ["a", "b"], of=pa.large_list(pa.string())), [None, [b"a", b"b"]]),
        (
            column(pa.array(["b", None, "b"]).dictionary_encode()),
            [[b"b"], None, [b"b"]],
        ),
        (column({"bytes": b"png", "path": "a.png"}, None, of=IMAGE), [[b"png"], None]),
        (column(None, None), [None, None]),
    ],
    ids=no_ids,
)
def test_types_of_parquet(room, content, wanted):
    report = room.ingest(room.put("a.parquet", content))
    records = room.records()
    assert [features_of(record).get("x") for record in records] == wanted
    assert [features_of(record)["row"] for record in records] == [
        [row] for row in range(len(wanted))
    ]
    assert report.corrupt_fraction == 0 and report.records == len(wanted)


def test_the_row_index_of_pandas_is_no_column(room):
    table = pa.table({"x": [1, 2], "__index_level_0__": [7, 9]})
    room.ingest(room.put("a.parquet", parquet_bytes(table)))
    assert [*map(features_of, room.records())] == [{"x": [1]}, {"x": [2]}]


ROWS: list[dict[str, Any]] = [
    {"fare": [12.5], "seconds": [300], "zip": [b"02134"]},
    {"fare": [7.0], "zip": [b"10115"], "company": ["Étoile".encode()]},
    {"seconds": [-1], "zip": [b"1"], "company": [b'two\r\nlines, "quoted"']},
]
CSV = (
    "fare,seconds,zip,company\r\n"
    "12.5,300,02134,\r\n"
    "7,NA,10115,Étoile\r\n"
    "\r\n"
    'nan, -1 ,1,"two\r\nlines, ""quoted"""\r\n'
).encode()
TABLE = pa.table(
    {
        "fare": [12.5, 7.0, None],
        "zip": ["02134", "10115", "1"],
        "seconds": pa.array([300, None, -1], pa.int32()),
        "company": [None, "Étoile", 'two\r\nlines, "quoted"'],
    }
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", parquet_bytes(TABLE)),
        ("a.parquet", parquet_bytes(TABLE, row_group_size=1)),
        ("a.csv", CSV),
        ("a.CSV", b"\xef\xbb\xbf" + CSV),
        ("a.csv.gz", gzip.compress(CSV)),
        ("a.csv", CSV.replace(b"\r\n", b"\n").replace(b"\nlines", b"\r\nlines")[:-1]),
    ],
    ids=no_ids,
)
def test_rows_are_the_same_records_as_of_tfrecords(room, name, content):
    """Byte for byte, so that equal records are found across formats."""
    report = room.ingest(room.put(name, content))
    assert room.records() == [encode(row) for row in ROWS]
    (file,) = report.files
    assert file.size_bytes == len(content) and not file.quarantined


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([".5", "1e3"], [0.5, 1000.0]),
        (["9223372036854775808", "1"], [b"9223372036854775808", b"1"]),
        (["1e39", "inf"], [b"1e39", b"inf"]),
        (["0x10", "1_000"], [b"0x10", b"1_000"]),
        (["\u0661", " 1"], ["\u0661".encode(), b" 1"]),
        (["-0", "+1"], [0, 1]),
        (["True", "0"], [b"True", b"0"]),
    ],
)
def test_a_column_of_csv_has_the_narrowest_type_without_loss(room, cells, values):
    room.ingest(room.put("a.csv", "\n".join(["x", *cells]).encode()))
    found = [features_of(record)["x"] for record in room.records()]
    assert repr(found) == repr([[value] for value in values])


def test_text_that_is_not_utf8_is_kept(room):
    room.ingest(room.put("a.csv", "name,n\nété,1\n".encode("latin-1")))
    record = encode({"n": [1], "name": ["été".encode("latin-1")]})
    assert room.records() == [record]


def png():
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG")
    return file.getvalue()


def cut_gzip():
    """It ends within the cell 22222, which then looks like another number."""
    plain = b"x\n11111\n22222\n"
    return gzip.compress(plain, 0)[: 15 + plain.index(b"22222") + 3]


def damaged_group():
    """The second of three row groups has other bytes than its codec wrote."""
    data = bytearray(
        parquet_bytes(
            pa.table({"x": [f"{n}" * 50 for n in range(30)]}),
            **{"row_group_size": 10, "compression": "gzip", "use_dictionary": False},
        )
    )
    group = parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0)
    end = group.data_page_offset + group.total_compressed_size
    data[end - 20 : end - 12] = b"\xff" * 8
    return bytes(data)


FLOATS = {"types": {"x": "float_list"}}
WHOLE = {"types": {"x": "int64_list"}}
PICTURES = {"images": (ImageCheck(feature="x"),)}


@pytest.mark.parametrize(
    ("name", "content", "settings", "kind", "number", "good"),
    [
        ("a.csv", b"x,y\n1,2\n3\n5,6\n", {}, "row", 2, 2),
        ("a.csv", b'x,y\n1,2\n"3"z,4\n5,6\n', {}, "row", 2, 2),
        ("a.csv", b'x,y\n1,2\n3,4\n"5,6\n', {}, "row", 3, 2),
        ("a.csv", b"x\n1\none\n3\n", WHOLE, "type", 2, 2),
        ("a.csv", b"x\n1\n1.5\n3\n", WHOLE, "type", 2, 2),
        ("a.csv", b"x\n1\n1_0\n3\n", WHOLE, "type", 2, 2),
        ("a.csv", b"x\n1\n9223372036854775808\n", WHOLE, "type", 2, 1),
        ("a.csv", b"x\n1\n1e39\n3\n", FLOATS, "type", 2, 2),
        ("a.csv", b"x\n1\n1e999\n3\n", FLOATS, "type", 2, 2),
        ("a.csv.gz", cut_gzip(), {}, "compression", 2, 1),
        ("a.parquet", column(1.0, 1e39, 2.0), {}, "type", 2, 2),
        ("a.parquet", column(1.0, 1.5), WHOLE, "type", 2, 1),
        ("a.parquet", column("1"), WHOLE, "type", 1, 0),
        ("a.parquet", column(decimal.Decimal(2**63), None), {}, "type", 1, 1),
        ("a.parquet", column(*map(decimal.Decimal, ("1.5", "2"))), WHOLE, "type", 1, 1),
        ("a.parquet", column(1, 2**63, of=pa.uint64()), {}, "type", 2, 1),
        ("a.parquet", column([1], [None]), {}, "type", 2, 1),
        (
            "a.parquet",
            column("a", "b" * 999),
            {"max_record_bytes": 99},
            "too_large",
            2,
            1,
        ),
        ("a.parquet", column(png(), b"no image"), PICTURES, "image", 2, 1),
        ("a.parquet", column(1)[:-9], {}, "not_parquet", 0, 0),
        ("a.parquet", b"x,y\n1,2\n", {}, "not_parquet", 0, 0),
        ("a.parquet", damaged_group(), {}, "row_group", 11, 20),
    ],
    ids=no_ids,
)
def test_a_bad_row_is_quarantined(room, name, content, settings, kind, number, good):
    path = room.put(name, content)
    report = room.ingest(path, **settings)
    (error,) = report.first_errors
    assert (error.path, error.kind, error.number) == (path, kind, number)
    assert len(room.records()) == report.records == good
    assert len(room.quarantine()) == 1 and report.corrupt_fraction > 0


def test_rows_behind_an_open_quote_are_lost_by_their_bytes(room):
    text = "x,y\n" + "1,2\n" * 100 + '"3,4\n' + "5,6\n" * 900
    report = room.ingest(room.put("a.csv", text.encode()))
    assert (report.records, report.quarantined) == (100, 1)
    assert report.lost_bytes == len('"3,4\n') + 900 * len("5,6\n")
    assert report.corrupt_fraction > 0.89
    (error,) = report.first_errors
    assert (error.number, error.data) == (101, None) and "line 1,002" in error.reason


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", column({"a": 1}), "x: struct<a: int64>"),
        ("a.parquet", column([[1]]), "x: list<"),
        ("a.parquet", column(datetime.time(1)), "x: time64[us]"),
        ("a.csv", b"a,a\n1,2\n", "'a'"),
        ("a.csv", b"a,\n1,2\n", "''"),
        ("a.csv", b"a,\xff\n1,2\n", "'\\udcff'"),
    ],
    ids=no_ids,
)
def test_columns_that_no_example_holds_are_refused_by_name(room, name, content, words):
    with pytest.raises(DataError) as caught:
        room.ingest(room.put(name, content))
    assert words in str(caught.value) and "a." in str(caught.value)


@pytest.mark.parametrize(
    ("contents", "wanted"),
    [
        ({"a.csv": b"x\n1\n", "b.csv": b"x\n1.5\n"}, [[1.0], [1.5]]),
        ({"a.csv": b"x\n1\n", "b.csv": b"x\n01\n"}, [[b"1"], [b"01"]]),
        ({"a.csv": b"x\n\n", "b.csv": b"x\n2\n"}, [[2]]),
        ({"a.parquet": column(1), "b.parquet": column(1.5)}, [[1.0], [1.5]]),
        ({"a.parquet": column(None), "b.parquet": column("b")}, [None, [b"b"]]),
        ({"a.csv": b"x,y\n1,\n", "b.csv": b"y,x\n,2\n"}, [[1], [2]]),
    ],
    ids=no_ids,
)
def test_files_whose_types_differ(room, contents, wanted):
    paths = [room.put(name, content) for name, content in contents.items()]
    report = room.ingest(*paths)
    assert [features_of(x).get("x") for x in room.records()] == wanted
    assert not report.quarantined


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"x,y\n"),
        ("a.parquet", b""),
        ("a.parquet", parquet_bytes(pa.table({"x": pa.array([], pa.int64())}))),
    ],
    ids=no_ids,
)
def test_files_without_rows(room, name, content):
    full = room.put("full.csv", b"x,y\n1,2\n")
    report = room.ingest(full, room.put(name, content))
    assert (report.records, report.quarantined) == (1, 0)
    assert len(report.empty_files) == 1


def test_ten_thousand_columns(room):
    names = [f"f{number}" for number in range(10_000)]
    lines = [",".join(names), *[",".join("1" * 10_000)] * 3]
    table = pa.table({name: [1, 1] for name in names})
    paths = [
        room.put("a.csv", "\n".join(lines).encode()),
        room.put("b.parquet", parquet_bytes(table)),
    ]
    report = room.ingest(*paths)
    assert report.records == 5
    assert len({*room.records()}) == 1
    assert len(features_of(room.records()[0])) == 10_000


def test_rows_are_hashed_as_tfrecords_are(room):
    splits = HashSplits(train=1, eval=1, by="user")
    text = "user,n\n" + "".join(f"u{n % 7},{n}\n" for n in range(100)) + ",1\n"
    path = room.put("a.csv", text.encode())
    report = room.ingest(path, splits=("train", "eval"), hash_splits=splits)
    by_split = {}
    for split in ("train", "eval"):
        users = {features_of(record)["user"][0] for record in room.records(split)}
        by_split[split] = users
        for record in room.records(split):
            assert splits.split_of(record) == split
    assert by_split["train"] and by_split["eval"]
    assert not by_split["train"] & by_split["eval"]
    assert dict(report.errors) == {"no_partition_feature": 1}
