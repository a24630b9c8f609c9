"""Files of predictions, as their readers read them."""

import csv
import json
from typing import Any

import pytest
from pyarrow import parquet

from serving.prediction_files import check_id, check_suffix, write_predictions
from serving.predictor import Prediction
from sluice.errors import DataError, UsageError

pytestmark = pytest.mark.unit

SHARES = {"no": 1 / 3, "a b": 2 / 3}


def rows(*ids, **answer):
    answer = answer or {"label": "no", "probabilities": SHARES}
    return [
        Prediction("in", index, id=value, **answer).to_dict("order")
        for index, value in enumerate(ids)
    ]


def read(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    with open(path, newline="", encoding="utf-8") as file:
        if path.suffix == ".csv":
            return [*csv.DictReader(file)]
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([2**63 - 1, -(2**53) - 1], [2**63 - 1, -(2**53) - 1]),
        (['é,\r\n"7"', "2"], ['é,\r\n"7"', "2"]),
        ([b"\xff", "x"], [{"b64": "/w=="}, "x"]),
    ],
)
def test_ids_and_probabilities_are_exact(tmp_path, suffix, ids, expected):
    path = tmp_path / f"out{suffix}"
    write_predictions(path, iter(rows(*ids)))
    found, is_table = read(path), suffix != ".jsonl"
    if is_table:
        expected = [json.dumps(x) if isinstance(x, dict) else x for x in expected]
    as_read = str if suffix == ".csv" else lambda value: value
    shares = {"probability_no": 1 / 3, "probability_a b": 2 / 3}
    answer: dict[str, Any] = shares if is_table else {"probabilities": SHARES}
    assert found == [
        {
            key: as_read(value)
            for key, value in {
                "order": own,
                "source": "in",
                "index": index,
                "label": "no",
                **answer,
            }.items()
        }
        for index, own in enumerate(expected)
    ]


def test_lists_are_json_in_a_table_and_what_is_missing_is_left_out(tmp_path):
    given = rows(1, labels=[], probabilities=SHARES)
    given += rows(2, labels=["a b"], probabilities=SHARES, missing=["x"])
    for name in ("out.csv", "out.parquet"):
        write_predictions(tmp_path / name, iter(given))
        found = read(tmp_path / name)
        assert [row["labels"] for row in found] == ["[]", '["a b"]']
        assert "missing" not in found[1]


@pytest.mark.parametrize("second", [0.5, "x", 2**63])
def test_parquet_refuses_ids_of_several_types(tmp_path, monkeypatch, second):
    """Found: pyarrow makes 0.5 a 0 where the first rows had whole numbers."""
    monkeypatch.setattr("serving.prediction_files._GROUP_SIZE", 1)
    with pytest.raises(DataError, match="as .parquet"):
        write_predictions(tmp_path / "out.parquet", iter(rows(1, second)))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_is_complete_or_as_before(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_text("before")

    def fail():
        yield from rows(1, 2)
        raise DataError("a line is not JSON")

    with pytest.raises(DataError, match="not JSON"):
        write_predictions(path, fail())
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "before"


def test_what_is_refused_before_a_model_is_loaded(tmp_path):
    for name in ("out", "out.xls", "out.csv.gz"):
        with pytest.raises(UsageError, match="ends in .csv, .jsonl, .parquet"):
            check_suffix(tmp_path / name)
    for name in ("index", "label", "missing", "probability_no"):
        with pytest.raises(UsageError, match="cannot be the id"):
            check_id(name)
