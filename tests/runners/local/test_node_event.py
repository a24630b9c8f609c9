"""The event of a node that has ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.local.graph_file import PlannedNode
from runners.local.node_event import node_finished
from runners.local.run_result import NodeResult
from sluice.record.events import Artifact, NodeFailure, Push
from sluice.record.run_record import DocumentRecord, NodeState
from sluice.record.verdict import Check, Verdict
from sluice.storage import atomic

pytestmark = pytest.mark.unit

MAKER = PlannedNode("Maker", "Maker", (), (), gate=False, resolver=False)
PUSHER = PlannedNode("P", "Pusher", (), (), gate=False, resolver=False, pushes=True)
SERVED = {"pushed_version": "3", "pushed_destination": "/s/3"}


def _of(type_name: str, uri: str = "u", **properties: Any) -> dict[str, Any]:
    artifact = {"id": 7, "type": type_name, "uri": uri, "properties": properties}
    return {"out": [artifact]}


def _pushed(ended: NodeState, **properties: Any) -> NodeResult:
    return NodeResult("P", ended, outputs=_of("PushedModel", **properties))


def test_a_verdict_is_part_of_the_event(tmp_path: Path) -> None:
    verdict = Verdict("model", (Check("auc", "overall", ">= 0.9", None, 0.5, False),))
    atomic.write_json(tmp_path / "verdict.json", verdict.to_dict())
    outputs = _of("components.ModelVerdict", str(tmp_path))
    event = node_finished(tmp_path, MAKER, NodeResult("Maker", "ran", outputs=outputs))
    assert [Verdict.from_dict(gate) for gate in event.gates] == [verdict]
    assert event.gates[0]["passed"] is False
    kept = Artifact(7, "components.ModelVerdict", str(tmp_path), {})
    assert event.outputs == {"out": [kept]}


@pytest.mark.parametrize("content", [None, "[", '{"gate": "data"}', "[1]"])
def test_a_verdict_that_cannot_be_read_is_noted(
    tmp_path: Path, content: str | None
) -> None:
    if content:
        (tmp_path / "verdict.json").write_text(content)
    outputs = _of("components.DataVerdict", str(tmp_path))
    event = node_finished(tmp_path, MAKER, NodeResult("Maker", "ran", outputs=outputs))
    assert event.gates == ()
    (note,) = event.notes
    assert f"the verdict in {tmp_path} cannot be read" in note


@pytest.mark.parametrize(
    ("result", "push"),
    [
        (_pushed("ran", state="pushed", **SERVED), Push("pushed", 3, "/s/3")),
        (
            _pushed("cached", state="pushed", **SERVED),
            Push("already_served", 3, "/s/3"),
        ),
        (_pushed("ran", state="blocked"), Push("blocked")),
        (NodeResult("P", "blocked", reason="stopped by DataGate"), Push("blocked")),
        (NodeResult("P", "failed", error=NodeFailure("disk full", 5)), Push("failed")),
        (NodeResult("P", "not_reached"), None),
        # The stock Pusher's, which says nothing of ours.
        (_pushed("ran", **SERVED), None),
    ],
)
def test_the_result_of_a_push(tmp_path: Path, result: NodeResult, push: Push) -> None:
    assert node_finished(tmp_path, PUSHER, result).push == push
    assert node_finished(tmp_path, MAKER, result).push is None


@pytest.mark.parametrize("names", [("ModelVerdict",), ("Canary", "InfraCheck")])
def test_a_blocked_push_names_the_nodes_without_a_blessing(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    inputs = {
        name: _of("ModelBlessing", f"/a/{name}/blessing/3", blessed=0)["out"]
        for name in names
    }
    inputs["other"] = _of("InfraBlessing", "/a/Other/blessing/3", blessed=1)["out"]
    result = replace(_pushed("ran", state="blocked"), inputs=inputs)
    event = node_finished(tmp_path, PUSHER, result)
    assert event.state == "blocked"
    assert event.reason == f"stopped by {' and '.join(names)}"
    held_back = NodeResult("P", "blocked", reason="stopped by DataGate")
    assert node_finished(tmp_path, PUSHER, held_back).reason == "stopped by DataGate"


def test_the_event_of_a_failed_node_has_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "Maker.log"
    failed = NodeResult("Maker", "failed", error=NodeFailure("boom", 7))
    assert node_finished(tmp_path, MAKER, failed).log is None
    log.parent.mkdir()
    log.touch()
    assert node_finished(tmp_path, MAKER, failed).log == str(log)
    assert node_finished(tmp_path, MAKER, NodeResult("Maker", "ran")).log is None


def test_the_report_of_the_nodes_process_is_part_of_the_event(tmp_path: Path) -> None:
    document = {"kind": "epochs", "node": "Maker", "path": "record/x", "digest": "d"}
    cache = {"key": "k", "parts": {}}
    facts = {"documents": [document], "notes": ["one"], "cache": cache}
    event = node_finished(tmp_path, MAKER, NodeResult("Maker", "ran"), facts)
    assert event.documents == (DocumentRecord(**document),)
    assert (event.notes, event.cache) == (("one",), cache)
