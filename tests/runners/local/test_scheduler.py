"""The scheduler: parallel nodes, order and retries."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sluice.errors import UsageError
from sluice.retries import Retries

pytestmark = pytest.mark.tf

DEADLINE_S = 120.0


def _intervals(foreign, name: str) -> list[tuple[float, float]]:
    """Returns when each node that came to a place began and ended, in order."""
    found: dict[str, list[float]] = {}
    for note in foreign.notes(name):
        found.setdefault(note["name"], []).append(note["at"])
    return sorted((begin, end) for begin, end in found.values())


def _meeting(foreign, own, name: str, nodes: int, *, wait_s: float) -> list:
    return [
        own.Meet(
            place=foreign.trace(name), name=f"n{number}", others=nodes, wait_s=wait_s
        ).with_id(f"N{number}")
        for number in range(nodes)
    ]


def test_independent_nodes_run_in_parallel(foreign, own) -> None:
    """Each waits until the other one is there, so neither ends without the other."""
    nodes = _meeting(foreign, own, "place", 2, wait_s=DEADLINE_S)
    run = foreign.run(nodes, workers=2)
    assert run.error is None
    (_, first_end), (second_begin, _) = _intervals(foreign, "place")
    assert second_begin < first_end
    met = [note["met"] for note in foreign.notes("place") if "met" in note]
    assert met == [True, True]


def test_with_one_worker_nodes_run_in_sequence(foreign, own) -> None:
    nodes = _meeting(foreign, own, "place", 2, wait_s=1.0)
    run = foreign.run(nodes, workers=1)
    assert run.error is None
    (_, first_end), (second_begin, _) = _intervals(foreign, "place")
    assert first_end < second_begin
    met = [note["met"] for note in foreign.notes("place") if "met" in note]
    assert met == [False, True]
    kinds = [event["event"] for event in run.events]
    assert kinds.count("node_started") == 2
    assert ("node_started", "node_started") not in list(pairwise(kinds))


@pytest.mark.fault
def test_four_nodes_may_publish_at_once(make_foreign, own) -> None:
    """In a new database, where each of them registers the types, and in an old one."""
    for run_ids in (("one",), ("one", "two")):
        foreign = make_foreign()
        for run_id in run_ids:
            nodes = _meeting(foreign, own, run_id, 4, wait_s=DEADLINE_S)
            run = foreign.run(nodes, workers=4, run_id=run_id)
            assert run.error is None
            assert set(run.states.values()) == {"ran"}
            assert sum(note.get("met", False) for note in foreign.notes(run_id)) == 4
            for number in range(4):
                path = run.uri(f"N{number}") / own.FILE
                assert path.read_text() == f"n{number}"
        assert foreign.execution_states() == {"COMPLETE": 4 * len(run_ids)}
        store = foreign.store()
        artifacts = store.get_artifacts()
        assert len({artifact.uri for artifact in artifacts}) == 4 * len(run_ids)
        assert all(artifact.state == artifact.LIVE for artifact in artifacts)
        assert len(store.get_contexts_by_type("pipeline_run")) == len(run_ids)
        assert len(store.get_contexts_by_type("node")) == 4
        assert [kind.name for kind in store.get_artifact_types()].count("Examples") == 1


def test_only_transient_failures_are_retried(foreign, own) -> None:
    def fails(name: str, raises: str, times: int = 1):
        node = own.FailAtFirst(trace=foreign.trace(name), raises=raises, times=times)
        return node.with_id(name)

    once = fails("Once", "transient")
    gate = own.ForeignGate(trace=foreign.trace("Gate"))
    behind = own.TakeParameters(trace=foreign.trace("Behind")).with_id("Behind")
    behind.add_upstream_node(gate)
    nodes = [
        once,
        own.Read(data=once.outputs["out"], trace=foreign.trace("Read")),
        fails("Connection", "connection"),
        fails("NeverWell", "transient", times=9),
        fails("NotAgain", "transient"),
        fails("Wrong", "value"),
        gate.with_id("Gate"),
        behind,
    ]
    retries = Retries(default=2, nodes={"NotAgain": 0}, backoff_s=0.2)

    run = foreign.run(nodes, retries=retries)

    assert run.states == {
        **dict.fromkeys(("Once", "Read", "Connection"), "ran"),
        **dict.fromkeys(("NeverWell", "NotAgain", "Wrong", "Gate"), "failed"),
        "Behind": "blocked",
    }
    attempts: dict[str, list[int]] = {}
    for event in run.of("node_started"):
        attempts.setdefault(event["node"], []).append(event["attempt"])
    assert attempts == {
        "Once": [1, 2],
        "Read": [1],
        "Connection": [1, 2],
        "NeverWell": [1, 2, 3],
        "NotAgain": [1],
        "Wrong": [1],
        "Gate": [1],
    }
    waits = [
        (event["attempt"], event["wait_s"])
        for event in run.of("node_retried")
        if event["node"] == "NeverWell"
    ]
    assert waits == [(1, 0.2), (2, 0.4)]
    for name in ("Once", "Connection", "NeverWell"):
        # Each attempt has written a file, which the next one does not find.
        assert {tuple(note["found"]) for note in foreign.notes(name)} == {()}
    left = sorted(path.name for path in run.uri("Once").iterdir())
    assert left == [own.FILE, "part-2"]
    assert run.message("NeverWell").startswith("the service does not answer")
    assert foreign.execution_states() == {"COMPLETE": 3, "FAILED": 4}


def test_no_retries_by_default(foreign, own) -> None:
    def node():
        return own.FailAtFirst(trace=foreign.trace("Fails"), raises="transient")

    run = foreign.run([node()])
    assert run.states == {"FailAtFirst": "failed"}
    assert run.nodes["FailAtFirst"].error.transient
    assert len(foreign.notes("Fails")) == 1
    # Tried again by hand, under the same run id.
    assert foreign.run([node()]).states == {"FailAtFirst": "ran"}


def test_other_nodes_run_while_one_waits_for_a_retry(foreign, own) -> None:
    again = own.FailAtFirst(trace=foreign.trace("Again"), raises="connection")
    between = own.TakeParameters(trace=foreign.trace("Between"))
    retries = Retries(default=1, backoff_s=3.0)
    run = foreign.run(
        [again.with_id("Again"), between.with_id("Between")],
        workers=1,
        retries=retries,
    )
    assert run.error is None
    told = [(event["event"], event["node"]) for event in run.events if "node" in event]
    assert told == [
        ("node_started", "Again"),
        ("node_retried", "Again"),
        ("node_started", "Between"),
        ("node_finished", "Between"),
        ("node_started", "Again"),
        ("node_finished", "Again"),
    ]
    first, second = foreign.notes("Again")
    assert second["at"] - first["at"] >= 3.0


def test_retries_of_an_unknown_node_are_refused(foreign, own) -> None:
    nodes = [own.TakeParameters(trace=foreign.trace("Never"))]
    run = foreign.run(nodes, retries=Retries(nodes={"Trainer": 1}))
    assert isinstance(run.error, UsageError)
    assert "there is no node 'Trainer'" in str(run.error)
    assert foreign.notes("Never") == []
