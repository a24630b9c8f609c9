"""The scheduler: parallel nodes and their order."""

import pytest

pytestmark = pytest.mark.tf

DEADLINE_S = 120.0


def _intervals(foreign, name):
    """Returns when each node that came to a place began and ended, in order."""
    found: dict[str, list[float]] = {}
    for note in foreign.notes(name):
        found.setdefault(note["name"], []).append(note["at"])
    return sorted((begin, end) for begin, end in found.values())


def _meeting(foreign, own, name, nodes, *, wait_s):
    return [
        own.Meet(
            place=foreign.trace(name), name=f"n{number}", others=nodes, wait_s=wait_s
        ).with_id(f"N{number}")
        for number in range(nodes)
    ]


def test_independent_nodes_run_in_parallel(foreign, own):
    """Each waits until the other one is there, so neither ends without the other."""
    nodes = _meeting(foreign, own, "place", 2, wait_s=DEADLINE_S)
    assert foreign.run(nodes, workers=2).error is None
    met = [note["met"] for note in foreign.notes("place") if "met" in note]
    assert met == [True, True]


def test_with_one_worker_nodes_run_in_sequence(foreign, own):
    nodes = _meeting(foreign, own, "place", 2, wait_s=1.0)
    assert foreign.run(nodes, workers=1).error is None
    (_, first_end), (second_begin, _) = _intervals(foreign, "place")
    assert first_end < second_begin


@pytest.mark.fault
def test_four_nodes_may_publish_at_once(foreign, own):
    """In a new database, where each of them registers the types, and in an old one."""
    for count, run_id in enumerate(("one", "two"), start=1):
        nodes = _meeting(foreign, own, run_id, 4, wait_s=DEADLINE_S)
        run = foreign.run(nodes, workers=4, run_id=run_id)
        assert set(run.states.values()) == {"ran"}
        for number in range(4):
            assert (run.uri(f"N{number}") / own.FILE).read_text() == f"n{number}"
        assert foreign.execution_states() == {"COMPLETE": 4 * count}
    store = foreign.store()
    assert len({item.uri for item in store.get_artifacts()}) == 8
    assert [kind.name for kind in store.get_artifact_types()].count("Examples") == 1
