"""The rules of a run's record, and what is read back."""

import math

import pytest

from sluice.errors import ExitCode, WorkspaceError
from sluice.mlmd_items import Artifact
from sluice.record.outcome import next_steps, outcome
from sluice.record.parts import (
    DocumentRecord,
    ErrorRecord,
    NodeEnd,
    NodeRecord,
    PushRecord,
)
from sluice.record.run_record import NOT_ASKED_FOR, RECORD_FILE, RunOptions, RunRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

MODEL, BLESSING = Artifact(1, "Model", "/m"), Artifact(2, "ModelBlessing", "/b")
REFUSED = Verdict("model", (Check(check="auc", result="FAIL"),))
SILENT = Verdict("serving", (Check(check="server", result="FAIL"),))


def a_record(**changes):
    """Returns a run of Gen > Gate > Train > Push that has begun."""
    record = RunRecord("20260101T000000Z-aaaa", "p", pushes=[PushRecord("/serving")])
    record.set_graph(
        [
            NodeRecord("Gen", "Gen"),
            NodeRecord("Gate", "Gate", upstream=["Gen"]),
            NodeRecord("Train", "Train", upstream=["Gate"]),
            NodeRecord("Push", "Pusher", upstream=["Train"]),
        ]
    )
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def run(record, *ends):
    """Ends nodes in order, and those that they stop."""
    for end in ends:
        record.start_node(end.node)
        record.end_node(end)
    for node in record.nodes:
        if node.state == "not_reached" and (end := record.stopped_by_upstream(node)):
            record.end_node(end)
    return record


def failed(node, exit_code=ExitCode.NODE, *, gate=False):
    error = ErrorRecord(node, f"{node} is broken", exit_code=int(exit_code), gate=gate)
    return NodeEnd(node, "failed", reason=error.message, error=error)


RAN = [NodeEnd(name, "ran") for name in ("Gen", "Gate", "Train", "Push")]


@pytest.mark.parametrize(
    ("ends", "gates", "expected"),
    [
        (RAN, [], ("succeeded", 0)),
        ([NodeEnd(end.node, "cached") for end in RAN], [], ("up_to_date", 0)),
        (RAN, [REFUSED], ("blocked", 4)),
        (RAN, [SILENT], ("blocked", 5)),
        (RAN, [SILENT, REFUSED], ("blocked", 4)),
        ([RAN[0], failed("Gate")], [], ("failed", 7)),
        ([RAN[0], failed("Gate", 3, gate=True)], [], ("blocked", 3)),
    ],
)
def test_status_and_exit_code_follow_from_the_nodes(ends, gates, expected):
    record = run(a_record(gates=gates), *ends)
    record.end()
    assert (record.status, record.exit_code) == expected
    assert record.ended_at is not None


def test_gates_stand_in_the_order_of_the_graph():
    """The serving check may end before the model is judged."""
    ends = [NodeEnd("Gen", "ran", gates=[SILENT]), NodeEnd("Gate", "ran")]
    ends[1].gates.append(REFUSED)
    record = run(a_record(), *ends)
    assert [verdict.gate for verdict in record.gates] == ["model", "serving"]
    record.end()
    assert outcome(record) == "blocked (model gate)"


def test_a_silent_model_can_be_checked_again():
    record = run(a_record(gates=[SILENT], command="sluice run p"), *RAN)
    record.end()
    assert outcome(record) == "blocked (serving gate)"
    assert next_steps(record)[-1][1] == "sluice run p --force ServingCheck"


def test_a_failed_node_stops_those_after_it():
    for end, state in (
        (failed("Gate"), "not_reached"),
        (failed("Gate", 3, gate=True), "blocked"),
    ):
        record = run(a_record(), RAN[0], end)
        assert [node.state for node in record.nodes[2:]] == [state, state]
        assert [node.reason for node in record.nodes[2:]] == 2 * ["stopped by Gate"]
        assert record.error == end.error
        assert record.pushes[0].state == state


def test_a_resumed_run_keeps_what_has_finished():
    record = run(a_record(), NodeEnd("Gen", "cached"), failed("Gate"))
    record.node("Push").state, record.node("Push").reason = "skipped", NOT_ASKED_FOR
    record.end()
    record.resume("sluice resume p", workers=2)
    states = [node.state for node in record.nodes]
    assert states == ["cached", "not_reached", "not_reached", "skipped"]
    assert (record.status, record.error, record.exit_code) == ("running", None, None)
    record.set_graph([NodeRecord(name, name) for name in ("Gen", "Gate", "New")])
    record.start_node("Gate")
    assert [node.attempts for node in record.nodes] == [1, 2, 0]


def test_a_record_is_read_back(tmp_path):
    record = run(a_record(options=RunOptions(workers=2, forced=["Gen"])), *RAN[:1])
    end = NodeEnd(
        "Gate",
        "ran",
        outputs={"model": [MODEL]},
        documents=[DocumentRecord("model", "Gate", "../1.json")],
        notes=["seen"],
    )
    run(record, end, failed("Train"))
    record.save(tmp_path)
    assert RunRecord.load(tmp_path) == record
    record.node("Push").progress = {"loss": math.nan, "of": [math.inf, 1.0]}
    record.save(tmp_path)
    progress = RunRecord.load(tmp_path).node("Push").progress
    assert progress == {"loss": "NaN", "of": ["Infinity", 1.0]}


@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "{", "[]", '{"schema_version": 2}', '{"schema_version": 1}'),
        100_000 * "[",
    ],
)
def test_what_is_no_record_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / RECORD_FILE).write_text(text)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        RunRecord.load(tmp_path)


def test_a_push_that_a_gate_has_blocked_stops_no_other_node():
    record = a_record()
    record.nodes.append(NodeRecord("After", "After", upstream=["Push"]))
    run(record, RAN[0], NodeEnd("Train", "ran", outputs={"blessing": [BLESSING]}))
    push = NodeEnd(
        "Push",
        "ran",
        inputs={"blessing": [BLESSING]},
        outputs={"pushed": [Artifact(3, "PushedModel", "/p")]},
        push=PushRecord("", "blocked"),
    )
    run(record, push)
    node = record.node("Push")
    assert (node.state, node.reason) == ("blocked", "stopped by Train")
    assert record.stopped_by_upstream(record.node("After")) is None
    assert record.pushes == [PushRecord("/serving", "blocked")]
