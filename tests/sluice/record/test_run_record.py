"""The run record round-trips and is the documented ``--json`` object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluice.record.run_record import (
    ArtifactRecord,
    DocumentRecord,
    ErrorRecord,
    NodeRecord,
    PushRecord,
    RunRecord,
)

pytestmark = pytest.mark.unit


def _record() -> RunRecord:
    record = RunRecord("20260101T000000Z-aaaa", "digits", "t", "sluice run digits")
    record.nodes = [NodeRecord("Trainer", "Trainer", "failed", 1.5, "boom")]
    record.error = ErrorRecord("Trainer", "boom", "logs/Trainer.log")
    record.pushes = [PushRecord("serving")]
    return record


def test_round_trip(tmp_path: Path) -> None:
    _record().save(tmp_path)
    assert RunRecord.load(tmp_path) == _record()


def test_the_json_object_has_the_documented_keys() -> None:
    document = _record().to_dict()
    assert document["schema_version"] == 1
    assert {
        "run_id",
        "pipeline",
        "status",
        "exit_code",
        "error",
        "nodes",
        "gates",
        "pushes",
        "report_uri",
        "resume_command",
    } <= document.keys()
    node = {"id", "kind", "state", "duration_s", "reason"}
    assert node <= document["nodes"][0].keys()
    assert document["error"].keys() == {"node", "message", "log", "log_tail"}
    assert document["pushes"][0].keys() == {"destination", "state", "version", "uri"}


def test_another_format_is_refused(tmp_path: Path) -> None:
    _record().save(tmp_path)
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**_record().to_dict(), "schema_version": 2}))
    with pytest.raises(ValueError, match="another format"):
        RunRecord.load(tmp_path)


def test_a_node_is_found_by_id() -> None:
    assert _record().node("Trainer").reason == "boom"
    with pytest.raises(KeyError):
        _record().node("Pusher")


def test_keys_of_a_later_sluice_are_ignored(tmp_path: Path) -> None:
    record = _record()
    record.artifacts = {"/a": ArtifactRecord(1, "Model")}
    record.documents = [DocumentRecord("metrics", "Evaluator", "m.json", "0")]
    document = record.to_dict()
    parts = [
        document,
        document["error"],
        document["nodes"][0],
        document["pushes"][0],
        document["artifacts"]["/a"],
        document["documents"][0],
    ]
    for part in parts:
        part["added_later"] = {"x": 1}
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert RunRecord.load(tmp_path) == record


@pytest.mark.parametrize("text", ["null", "[]", "7"])
def test_an_invalid_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="another format"):
        RunRecord.load(tmp_path)


def test_a_damaged_part_is_refused(tmp_path: Path) -> None:
    document = _record().to_dict()
    document["nodes"] = [["Trainer"]]
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(TypeError):
        RunRecord.load(tmp_path)
