"""CSV files: types without loss, and every malformed row named by its line."""

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
    first = {"fare": 12.5, "seconds": 300, "zip": b"02134", "company": b"Blue, Ribbon"}
    second = {"fare": 7.0, "zip": b"10115", "company": "\u00c9toile".encode()}
    third = {"seconds": -1, "zip": b"1", "company": b'two\nlines "quoted"'}
    assert [values(rows[position]) for position in range(len(rows))] == [
        {**first, "label": b"yes"},
        {**second, "note": b"NA", "label": b"no"},
        {**third, "note": b"NaN", "label": b"yes"},
    ]


@pytest.mark.parametrize(
    ("cells", "read_back"),
    [
        (["1", "2"], [1, 2]),
        (["1", "2.5"], [1.0, 2.5]),
        (["+3", "-0"], [3, 0]),
        ([".5", "1e3"], [0.5, 1000.0]),
        (["9223372036854775808", "1"], [b"9223372036854775808", b"1"]),
        (["1e39", "inf"], [b"1e39", b"inf"]),
        (["0x10", "1_000"], [b"0x10", b"1_000"]),
        (["007", "1.5"], [b"007", b"1.5"]),
        (["\u0661", " 1"], ["\u0661".encode(), b" 1"]),
    ],
)
def test_a_column_has_the_narrowest_type_without_loss(path, cells, read_back):
    rows = read(path, "x,label\n" + "".join(f"{cell},0\n" for cell in cells))
    found = [values(rows[position])["x"] for position in range(2)]
    assert list(map(repr, found)) == list(map(repr, read_back))


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_what_is_read_is_what_was_written(tmp_path_factory, cells):
    # In quotes, every cell is possible; the one that begins with x is always text.
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "label"])
    writer.writerows((a, f"x{label}") for a, label in cells)
    rows = read(tmp_path_factory.mktemp("csv") / "rows.csv", text.getvalue())
    assert len(rows) == len(cells)
    for position, (cell, label) in enumerate(cells):
        found = values(rows[position])
        value = found.get("a")
        assert found["label"] == f"x{label}".encode()
        if isinstance(value, bytes):
            assert value == cell.encode()
        elif value is None:
            assert cell in ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
        else:
            number = np.float32(cell) if isinstance(value, float) else int(cell)
            assert value == number


def test_the_records_are_the_rows(path, tmp_path):
    path.write_text("x,label\n" + "".join(f"{x},{x % 3}\n" for x in range(100)))
    made = catalog.make("csv", tmp_path / "made", source=Source(tmp_path, "label"))
    paths = [tmp_path / "made" / shard.name for shard in made.shards]
    found = [values(record) for item in paths for record in tfrecord.read(item)]
    assert sorted(row["x"] for row in found) == list(range(100))
    assert all(row["label"] == row["x"] % 3 for row in found)
    assert [made.records(split) for split in ("train", "eval", "test")] == [80, 10, 10]


@pytest.mark.parametrize(
    ("content", "words", "line", "actual"),
    [
        ("a,label\n1,2\n3\n", "cells in this row differs", 3, "1"),
        ('a,label\n"x\ny",2\n3,4,5\n', "cells in this row differs", 4, "3"),
        (b"a,label\n1,2\n\xe9t\xe9,2\n", "not UTF-8", 3, "the byte 0xe9 at 1"),
        ('a,label\n1,2\n"open,3\n', "row is malformed", 3, "unexpected end of data"),
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


def test_the_label_must_be_a_column(path):
    with pytest.raises(UsageError, match="no column 'tipps'") as caught:
        read(path, "fare,tips\n1,2\n", "tipps")
    assert caught.value.hint == "did you mean 'tips'?"
    with pytest.raises(UsageError, match="label column is not given"):
        read(path, "fare,tips\n1,2\n", None)


def test_a_folder_has_one_csv_file_with_rows(tmp_path):
    with pytest.raises(UsageError, match="there is no CSV file here"):
        read_csv(Source(tmp_path, "label"))
    (tmp_path / "a.csv").write_text("label\n")
    with pytest.raises(DataError, match="csv has too few examples"):
        catalog.make("csv", tmp_path / "made", source=Source(tmp_path, "label"))
    (tmp_path / "b.csv").touch()
    with pytest.raises(UsageError, match="several CSV files") as caught:
        read_csv(Source(tmp_path, "label"))
    assert caught.value.examples == ("a.csv", "b.csv")
