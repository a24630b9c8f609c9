"""CSV files: types without loss, and every malformed row named by its line."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_data import catalog
from sample_data.csv_file import read_csv
from sample_data.data_set import ALL, Source
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit


def values(record):
    """The only value of each feature."""
    return {
        name: getattr(feature, feature.WhichOneof("kind")).value[0]
        for name, feature in parse(record).features.feature.items()
    }


def read(path, content, label="label"):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_csv(Source(path, label)).parts[ALL]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trips.csv"


def test_types_and_missing_cells(path):
    rows = read(
        path,
        "\ufefffare,seconds,zip,company,note,label\n"
        '12.5,300,02134,"Blue, Ribbon",,yes\n'
        "7,NA,10115,\u00c9toile,NA,no\n"
        "\n"
        'nan,-1,1,"two\nlines ""quoted""",NaN,yes\n',
    )

    assert [values(rows[position]) for position in range(len(rows))] == [
        {
            "fare": 12.5,
            "seconds": 300,
            "zip": b"02134",
            "company": b"Blue, Ribbon",
            "label": b"yes",
        },
        {
            "fare": 7.0,
            "zip": b"10115",
            "company": "\u00c9toile".encode(),
            "note": b"NA",
            "label": b"no",
        },
        {
            "seconds": -1,
            "zip": b"1",
            "company": b'two\nlines "quoted"',
            "note": b"NaN",
            "label": b"yes",
        },
    ]


@pytest.mark.parametrize(
    ("cells", "read_back"),
    [
        (["1", "2"], [1, 2]),
        (["1", "2.5"], [1.0, 2.5]),
        (["+3", "-0"], [3, 0]),
        ([".5", "1e3"], [0.5, 1000.0]),
        (["9223372036854775807", "1"], [2**63 - 1, 1]),
        (["9223372036854775808", "1"], [b"9223372036854775808", b"1"]),
        (["1e39", "1"], [b"1e39", b"1"]),
        (["inf", "1"], [b"inf", b"1"]),
        (["0x10", "1"], [b"0x10", b"1"]),
        (["1_000", "1"], [b"1_000", b"1"]),
        (["007", "1.5"], [b"007", b"1.5"]),
        (["\u0661", "1"], ["\u0661".encode(), b"1"]),
        ([" 1", "2"], [b" 1", b"2"]),
    ],
)
def test_a_column_has_the_narrowest_type_without_loss(path, cells, read_back):
    rows = read(path, "x,label\n" + "".join(f"{cell},0\n" for cell in cells))

    found = [values(rows[position])["x"] for position in range(2)]
    assert found == read_back
    assert [type(value) for value in found] == [type(value) for value in read_back]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8))
def test_what_is_read_is_what_was_written(tmp_path_factory, cells):
    # In quotes, every cell is possible; the one that begins with x is always text.
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b", "label"])
    writer.writerows((a, b, f"x{c}") for a, b, c in cells)
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    rows = read(path, text.getvalue())

    assert len(rows) == len(cells)
    for position, (a, b, c) in enumerate(cells):
        found = values(rows[position])
        assert found["label"] == f"x{c}".encode()
        for name, cell in (("a", a), ("b", b)):
            value = found.get(name)
            if isinstance(value, bytes):
                assert value == cell.encode()
            elif value is None:
                assert cell in ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
            else:
                assert value == (
                    np.float32(cell) if isinstance(value, float) else int(cell)
                )


def test_the_records_are_the_rows(path, tmp_path):
    path.write_text("x,label\n" + "".join(f"{x},{x % 3}\n" for x in range(100)))
    made = catalog.make("csv", tmp_path / "made", source=Source(tmp_path, "label"))

    found = [
        values(record)
        for shard in made.shards
        for record in tfrecord.read(tmp_path / "made" / shard.name)
    ]
    assert sorted(row["x"] for row in found) == list(range(100))
    assert all(row["label"] == row["x"] % 3 for row in found)
    assert [made.records(split) for split in ("train", "eval", "test")] == [80, 10, 10]


@pytest.mark.parametrize(
    ("content", "words", "line", "actual"),
    [
        ("a,label\n1,2\n3\n", "cells in this row differs", 3, "1"),
        ('a,label\n"x\ny",2\n3,4,5\n', "cells in this row differs", 4, "3"),
        (b"a,label\n1,2\n\xe9t\xe9,2\n", "not UTF-8", 3, "the byte 0xe9 at 1"),
        ("a,label\n1,2\n".encode("utf-16"), "not UTF-8", 1, "the byte 0xff at 1"),
        ('a,label\n1,2\n"open,3\n', "row is malformed", 3, "unexpected end of data"),
        ('a,label\n"x"y,2\n', "row is malformed", 2, "',' expected after '\"'"),
        ("a,label\n1,2\n2,\n", "has no label: its 'label' is empty", 3, None),
        ("a,label\n" + "x" * (1 << 20) + ",1\n", "line is too long", 2, None),
        ("", "not a header", 1, "an empty line"),
        ("a,a,label\n1,2,3\n", "not a header", 1, "'a', 'a', 'label'"),
        ("a,,label\n1,2,3\n", "not a header", 1, "'a', '', 'label'"),
    ],
)
def test_a_bad_line_is_named(path, tmp_path, content, words, line, actual):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=words) as caught:
        catalog.make("csv", tmp_path / "made", source=Source(path, "label"))

    assert caught.value.where == f"{path}:{line}"
    assert actual is None or caught.value.actual == actual
    assert not (tmp_path / "made").exists()


def test_a_header_alone(path, tmp_path):
    path.write_text("a,label\n")

    with pytest.raises(DataError, match="csv has too few examples"):
        catalog.make("csv", tmp_path / "made", source=Source(path, "label"))


def test_the_label_must_be_a_column(path):
    with pytest.raises(UsageError, match="no column 'tipps'") as caught:
        read(path, "fare,tips\n1,2\n", "tipps")
    assert caught.value.expected == "one of fare, tips"
    assert caught.value.hint == "did you mean 'tips'?"
    with pytest.raises(UsageError, match="label column is not given") as caught:
        read(path, "fare,tips\n1,2\n", None)
    assert "--label COLUMN" in str(caught.value.hint)


def test_a_folder_has_one_csv_file(tmp_path):
    with pytest.raises(UsageError, match="there is no CSV file here"):
        read_csv(Source(tmp_path, "label"))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("label\n1\n")
    with pytest.raises(UsageError, match="several CSV files") as caught:
        read_csv(Source(tmp_path, "label"))
    assert caught.value.examples == ("a.csv", "b.csv")
    with pytest.raises(UsageError, match="there is no CSV file here"):
        read_csv(Source(tmp_path / "c.csv", "label"))
