"""Files of predictions, as their readers read them."""

import csv
import json
from typing import Any

import pytest
from pyarrow import parquet

from serving.prediction_files import write_predictions
from serving.predictor import Prediction
from sluice.errors import DataError, UsageError

pytestmark = pytest.mark.unit

SHARES = {"no": 1 / 3, "a b": 2 / 3}
SUFFIXES = pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])


def rows(*ids, **answer):
    found = (Prediction("in", 0, probabilities=SHARES, id=x, **answer) for x in ids)
    return [prediction.to_dict("order") for prediction in found]


def read(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    with open(path, newline="", encoding="utf-8") as file:
        return [
            *(csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file))
        ]


@SUFFIXES
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([2**63 - 1, -(2**53) - 1], None),
        (['é,\r\n"7"', "2"], None),
        ([b"\xff", "x"], [{"b64": "/w=="}, "x"]),
    ],
)
def test_ids_and_probabilities_are_exact(tmp_path, suffix, ids, expected):
    path = tmp_path / f"out{suffix}"
    write_predictions(path, iter(rows(*ids, labels=["a b"], missing=["x"])))
    found, expected = read(path), expected or ids
    more: dict[str, Any]
    if suffix == ".jsonl":
        more = {"labels": ["a b"], "probabilities": SHARES, "missing": ["x"]}
    else:
        expected = [json.dumps(x) if isinstance(x, dict) else x for x in expected]
        shares = {"probability_no": 1 / 3, "probability_a b": 2 / 3}
        more = {"labels": '["a b"]', **shares}
    wanted = [{"order": x, "source": "in", "index": 0, **more} for x in expected]
    if suffix == ".csv":
        wanted = [{key: str(x) for key, x in row.items()} for row in wanted]
    assert found == wanted


@SUFFIXES
def test_targets_are_named(tmp_path, suffix):
    path, targets = tmp_path / f"out{suffix}", {"price": 1 / 3, "days": 2.5}
    row = Prediction("in", 0, prediction=targets).to_dict()
    write_predictions(path, iter([row]))
    named = {f"prediction_{name}": value for name, value in targets.items()}
    (found,) = read(path)
    wanted = row if suffix == ".jsonl" else {"source": "in", "index": 0, **named}
    assert {k: str(x) for k, x in found.items()} == {
        k: str(x) for k, x in wanted.items()
    }


@pytest.mark.parametrize("second", [0.5, "x", 2**63])
def test_parquet_refuses_ids_of_several_types(tmp_path, monkeypatch, second):
    """Found: pyarrow makes 0.5 a 0 where the first rows had whole numbers."""
    monkeypatch.setattr("serving.prediction_files._GROUP_SIZE", 1)
    with pytest.raises(UsageError, match="cannot be written"):
        write_predictions(tmp_path / "out.parquet", iter(rows(1, second)))
    assert [*tmp_path.iterdir()] == []


@SUFFIXES
def test_a_file_is_complete_or_as_before(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_text("before")

    def fail():
        yield from rows(1, 2)
        raise DataError("a line is not JSON")

    with pytest.raises(DataError, match="not JSON"):
        write_predictions(path, fail())
    assert [(item, item.read_text()) for item in tmp_path.iterdir()] == [
        (path, "before")
    ]
