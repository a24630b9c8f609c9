"""``sluice explain``: the reasons that it prints."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.unit


def test_the_screen_and_json(root, sluice, monkeypatch):
    nothing = {"would_run": True, "waits_for": [], "last_run": None}
    because = [f"file {number}: is new" for number in range(30)]
    ingestion = {**nothing, "node": "TFRecordGen", "because": because}
    trainer = {
        "node": "Trainer",
        "would_run": True,
        "because": ["property epochs: 1 -> 2"],
        "waits_for": ["TFRecordGen"],
        "last_run": "20260101T000000Z-aaaa",
    }
    nodes = [ingestion, trainer]
    monkeypatch.setattr("runners.cli.explain.explain_node", lambda config, node: nodes)
    code, out, _ = sluice("explain", "digits", "Trainer")
    assert code == 0
    assert out.splitlines() == [
        "Trainer would run",
        "  since run 20260101T000000Z-aaaa:",
        "  TFRecordGen would run before it",
        "  property epochs: 1 -> 2",
        "TFRecordGen would run",
        *(f"  file {number}: is new" for number in range(12)),
        "  and 18 more",
    ]
    _, out, _ = sluice("explain", "digits", "Trainer", "--json")
    known = {"schema_version": 1, "pipeline": "digits"}
    assert json.loads(out) == {**known, "nodes": nodes}
