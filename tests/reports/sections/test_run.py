"""The section Run: graph, timeline, table of nodes, and the ends of the logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reports.read_run import RunData
from reports.run_page import render_run
from reports.sections.run import build
from sluice.record.parts import ErrorRecord, NodeRecord

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]


def node(name: str, start: int | None, duration: float | None, **more: Any):
    at = None if start is None else f"2026-01-01T00:01:{start:02d}.250000+00:00"
    values: dict[str, Any] = {"state": "ran", "attempts": int(at is not None)}
    return NodeRecord(
        name, name, duration_s=duration, started_at=at, **{**values, **more}
    )


def test_where_the_time_went(run_with: RunWith) -> None:
    nodes = [
        node("Gen", 10, 4.0),
        node("Trainer", 14, 20.0, upstream=["Gen"]),
        node("Cached", None, 0.0, state="cached", reason="same inputs"),
    ]
    view = build(run_with(nodes=nodes))
    assert view is not None
    assert view.time == (
        "The first node started 10.2 s after the start (TFX import, graph); the "
        "longest nodes are Trainer 20.0 s, Gen 4.0 s; 1.0 nodes ran at once on average."
    )
    assert view.timeline is not None and "Cached" not in view.timeline
    assert [row[0] for row in view.nodes.rows] == ["Gen", "Trainer", "Cached"]
    assert view.nodes.rows[2][2:] == (None, None, 0, "same inputs")
    assert [str(row[1]) for row in view.nodes.rows] == ["ran", "ran", "cached"]


def test_the_job_of_a_run_in_a_service(run_with: RunWith) -> None:
    config = {"cloud": {"engine": "vertex"}}
    run = run_with(nodes=[node("Gen", 10, 4.0)], config=config)
    job = {"name": "7-8", "page": ""}
    (run.run_dir / "job.json").write_text(json.dumps(job))
    view = build(run)
    assert view is not None and view.job_page is None
    assert view.facts[:2] == [("Engine", "Vertex AI"), ("Job", "7-8")]
    assert "(queue, graph)" in view.time
    run = RunData(run.run_dir, run.record)
    changed = {**job, "page": "https://console/#/runs?a=1&b=2"}
    (run.run_dir / "job.json").write_text(json.dumps(changed))
    page = render_run(run)
    assert '<a href="https://console/#/runs?a=1&amp;b=2">' in page
    assert '<dt>Job</dt><dd><span class="value">7-8</span></dd>' in page
    run = RunData(run.run_dir, run.record)
    (run.run_dir / "job.json").write_text("[]")
    assert "Job</dt>" not in render_run(run)
    assert run.notices == [
        "job.json cannot be read: 'list' object has no attribute 'keys'"
    ]


def test_a_page_says_that_its_run_is_a_rehearsal(run_with: RunWith) -> None:
    config = {"cloud": {"engine": "vertex"}}
    view = build(run_with(tags={"rehearsal": "round 1"}, config=config))
    assert view is not None
    assert view.facts[0] == ("Engine", "Vertex AI, rehearsed on this machine: round 1")


def test_after_a_resume_the_timeline_begins_there(run_with: RunWith) -> None:
    nodes = [node("Gen", 10, 4.0), node("Trainer", 40, 5.0)]
    run = run_with(nodes=nodes, resumed_at=["2026-01-01T00:01:30+00:00"])
    view = build(run)
    assert view is not None and view.timeline is not None
    assert ">Gen</text>" not in view.timeline and ">Trainer</text>" in view.timeline
    assert view.time.startswith("The first node started 10.2 s after the resume")


def test_the_graph_has_states_and_no_style_of_its_own(run_with: RunWith) -> None:
    nodes = [
        NodeRecord("Gate", "DataGate", "failed", upstream=["Lost"]),
        NodeRecord("Next", "Next", "not_reached", upstream=["Gate"]),
    ]
    view = build(run_with(nodes=nodes))
    assert view is not None and view.graph is not None
    assert "Gate (DataGate), a gate: failed; waits for nothing" in view.graph
    assert "not reached" in view.graph and "<style" not in view.graph


def test_a_large_graph_is_only_a_table(run_with: RunWith) -> None:
    nodes = [NodeRecord(f"n{i}", "Kind", "ran") for i in range(201)]
    view = build(run_with(nodes=nodes))
    assert view is not None and view.graph is None and len(view.nodes.rows) == 201


def test_the_log_of_the_failed_node_is_open(run_with: RunWith) -> None:
    error = ErrorRecord("Trainer", "failed", None)
    run = run_with(status="failed", error=error)
    (run.run_dir / "logs").mkdir()
    for name in ("start", "Trainer", "TFRecordGen"):
        (run.run_dir / "logs" / f"{name}.log").write_text(f"<b>of {name}</b>\n")
    (run.run_dir / "logs" / "TFRecordGen.log").write_text("\n")
    view = build(run)
    assert view is not None
    assert [(log.name, log.is_open) for log in view.logs] == [
        ("start", False),
        ("Trainer", True),
    ]
    assert "&lt;b&gt;of Trainer&lt;/b&gt;" in render_run(run)


def test_a_refused_run_has_no_such_section(run_with: RunWith) -> None:
    assert build(run_with(nodes=[], gates=[], status="failed")) is None


def test_device_and_strategy(run_with: RunWith) -> None:
    training = {"strategy": "mirrored: 2 GPUs", "device_memory_peak_bytes": 2_500_000}
    view = build(run_with({"epochs": {"training": training}}))
    assert view is not None
    assert ("Node ran on", "mirrored: 2 GPUs") in view.facts
    assert ("Device memory", "2.5 MB at its peak") in view.facts
