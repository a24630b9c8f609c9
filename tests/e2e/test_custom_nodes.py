"""Custom nodes: run, cached, run again after a change, and as a gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

SOURCE = """
import json
from pathlib import Path

from tfx.dsl.component.experimental.annotations import (
    InputArtifact, OutputArtifact, Parameter
)
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Examples, String

from checks.words import UNIT
from sluice.errors import GateError


@component
def CountFiles(
    examples: InputArtifact[Examples],
    summary: OutputArtifact[String],
    at_least: Parameter[int] = 1,
):
    count = len(list(Path(examples.uri).rglob("*.gz")))
    if count < at_least:
        raise GateError(f"{count} {UNIT}", expected=f"at least {at_least}")
    summary.value = f"{count} {UNIT}"
"""
NODES = {
    "CountFiles": {
        "component": "checks.nodes:CountFiles",
        "inputs": {"examples": "TFRecordGen.examples"},
        "before": ["OnlyEval", "Transform"],
    },
    "OnlyEval": {
        "component": "tfx.components:StatisticsGen",
        "inputs": {"examples": "TFRecordGen.examples"},
        "parameters": {"exclude_splits": ["train"]},
    },
}
ASKED = ("CountFiles", "OnlyEval")


def test_custom_nodes_run_are_cached_and_can_be_gates(trips):
    trips.fill()
    trips.settings = [f"nodes={json.dumps(NODES)}"]
    checks: Path = trips.root / "checks"
    checks.mkdir()
    (checks / "nodes.py").write_text(SOURCE)
    words = checks / "words.py"
    words.write_text("UNIT = 'files'\n")
    run: Callable[..., Any] = trips.run

    def states(record: Any) -> dict[str, str]:
        return {name: record.node(name).state for name in ASKED}

    first = run(to_nodes=ASKED)
    assert states(first) == dict.fromkeys(ASKED, "ran"), first.error
    (summary,) = first.node("CountFiles").outputs["summary"]
    assert Path(summary).read_text() == "2 files"
    (statistics,) = first.node("OnlyEval").outputs["statistics"]
    assert [path.name for path in Path(statistics).glob("Split-*")] == ["Split-eval"]
    documents = {(item.kind, item.node) for item in first.documents}
    assert ("statistics", "OnlyEval") in documents

    again = run(to_nodes=ASKED)
    assert (again.status, states(again)) == (
        "up_to_date",
        dict.fromkeys(ASKED, "cached"),
    )
    words.write_text("UNIT = 'shards'\n")
    assert states(run(to_nodes=ASKED)) == {"CountFiles": "ran", "OnlyEval": "cached"}

    blocked = run("nodes.CountFiles.parameters={at_least: 3}", to_nodes=ASKED)
    assert (blocked.status, blocked.exit_code) == ("blocked", 3)
    assert states(blocked) == {"CountFiles": "failed", "OnlyEval": "blocked"}
    assert blocked.error and "2 shards" in blocked.error.message
