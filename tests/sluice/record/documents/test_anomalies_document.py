"""The anomalies document: what TFDV found in each split."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2

from sluice.errors import WorkspaceError
from sluice.record.documents import anomalies_document as module
from sluice.record.documents.anomalies_document import anomalies_document

pytestmark = pytest.mark.unit


def write(folder: Path, split: str, found: anomalies_pb2.Anomalies) -> Path:
    path = folder / f"Split-{split}" / "SchemaDiff.pb"
    path.parent.mkdir(parents=True)
    path.write_bytes(found.SerializeToString())
    return path


def anomalies() -> anomalies_pb2.Anomalies:
    found = anomalies_pb2.Anomalies()
    for feature in ("company", "age"):
        info = found.anomaly_info[feature]
        info.severity = anomalies_pb2.AnomalyInfo.ERROR
        info.reason.add(
            type=anomalies_pb2.AnomalyInfo.ENUM_TYPE_UNEXPECTED_STRING_VALUES,
            short_description="Unexpected string values",
            description="Examples contain values missing from the schema: Flash (1%).",
        )
    return found


def test_each_reason_is_a_row(tmp_path: Path) -> None:
    write(tmp_path, "train", anomalies())
    write(tmp_path, "eval", anomalies_pb2.Anomalies(data_missing=True))
    train, evaluated = anomalies_document(tmp_path, ["train", "eval"], {"age"})[
        "splits"
    ]
    age, company = train["anomalies"]
    assert (train["split"], train["anomalies_left_out"]) == ("train", 0)
    assert company == {
        "feature": "company",
        "kind": "ENUM_TYPE_UNEXPECTED_STRING_VALUES",
        "severity": "error",
        "short": "Unexpected string values",
        "long": "Examples contain values missing from the schema: Flash (1%).",
    }
    assert age == {**company, "feature": "age", "long": None}
    (missing,) = evaluated["anomalies"]
    assert (missing["feature"], missing["kind"]) == (None, "DATA_MISSING")


def test_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANOMALIES", 1)
    write(tmp_path, "train", anomalies())
    (split,) = anomalies_document(tmp_path, ["train"])["splits"]
    assert (len(split["anomalies"]), split["anomalies_left_out"]) == (1, 1)


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "train", anomalies())
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(WorkspaceError, match="anomalies cannot be read") as caught:
        anomalies_document(tmp_path, ["train"])
    assert caught.value.where == str(path)
