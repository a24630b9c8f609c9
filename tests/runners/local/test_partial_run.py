"""Parts of a graph, by TFX's ``RunOptions``."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runners.local.run_result import NOT_ASKED_FOR
from sluice.errors import UsageError

pytestmark = pytest.mark.tf


@pytest.fixture
def run_part(foreign, own):
    """Runs Make > First > Second > Last, and Side beside them, or a part of it."""

    def run_part(run_id: str, text: str = "hello", **part):
        def copy(before, name: str):
            node = own.Copy(data=before.outputs["out"], trace=foreign.trace(name))
            return node.with_id(name)

        make = own.Make(trace=foreign.trace("Make"), text=text)
        first = copy(make, "First")
        second = copy(first, "Second")
        last = own.Read(data=second.outputs["out"], trace=foreign.trace("Last"))
        side = own.Make(trace=foreign.trace("Side")).with_id("Side")
        nodes = [make, first, second, last.with_id("Last"), side]
        return foreign.run(nodes, run_id=run_id, part=part or None)

    return run_part


def _ran(run) -> list[str]:
    return sorted(name for name, state in run.states.items() if state == "ran")


def _with_reason(run, reason: str) -> list[str]:
    return sorted(name for name, found in run.reasons.items() if found == reason)


def _assert_refused(run, *words: str) -> None:
    assert isinstance(run.error, UsageError)
    assert all(word in str(run.error) for word in words), run.error
    assert run.nodes == {}


def _texts(foreign) -> Sequence[str]:
    return [note["read"] for note in foreign.notes("Last")]


def test_an_invalid_selection_is_refused(foreign, run_part) -> None:
    _assert_refused(
        run_part("0", from_nodes=["Frist"]),
        "there is no node 'Frist'",
        "expected: one of Make, Side, First, Second, Last",
        "did you mean 'First'?",
    )
    _assert_refused(
        run_part("1", from_nodes=["Last"], to_nodes=["First"]),
        "no node is selected",
        "no path leads from Last to First",
    )
    _assert_refused(
        run_part("2", from_nodes=["Second"]),
        "no earlier run has what this part of the graph starts from",
        "a run in which these nodes have finished: Make, First",
        "run the whole pipeline first",
    )
    assert not any(foreign.root.glob("*.trace"))

    beginning = run_part("3", to_nodes=["First"])
    assert _ran(beginning) == ["First", "Make"]
    # TFX warns of it at every input.
    assert "property_predicate" not in beginning.log("First")
    outside = _with_reason(beginning, NOT_ASKED_FOR)
    assert outside == ["Last", "Second", "Side"]
    assert {beginning.states[name] for name in outside} == {"skipped"}

    # This run has not come as far as that.
    _assert_refused(run_part("4", from_nodes=["Last"]), "no earlier run has")
    _assert_refused(
        run_part("5", from_nodes=["Last"], base_pipeline_run_id="3"),
        "run 3 does not have what this part of the graph starts from",
        "a run in which these nodes have finished: Make, First, Second",
    )
    _assert_refused(
        run_part("6", from_nodes=["First"], base_pipeline_run_id="of nobody"),
        "run of nobody does not have what this part of the graph starts from",
    )
    assert foreign.execution_states() == {"COMPLETE": 2}


def test_a_part_reuses_outputs_of_an_earlier_run(foreign, run_part) -> None:
    assert len(_ran(run_part("old", "old"))) == 5
    assert len(_ran(run_part("new", "new"))) == 5

    newest = run_part("from", from_nodes=["Second"])
    assert newest.error is None
    assert _ran(newest) == ["Last", "Second"]
    taken = _with_reason(newest, "taken from run new")
    assert taken == ["First", "Make", "Side"]
    assert {newest.states[name] for name in taken} == {"cached"}

    named = run_part("base", from_nodes=["Second"], base_pipeline_run_id="old")
    assert _with_reason(named, "taken from run old") == taken
    # A run that was itself a part has what it took, too.
    between = run_part("both", from_nodes=["First"], to_nodes=["Second"])
    assert _ran(between) == ["First", "Second"]
    assert _with_reason(between, "taken from run base") == ["Make", "Side"]
    assert between.states["Last"] == "skipped"
    end = run_part("end", from_nodes=["Last"])
    assert _with_reason(end, "taken from run both") == sorted([*taken, "Second"])

    assert _texts(foreign) == ["old''", "new''", "new''", "old''", "old''"]
    assert len(foreign.notes("Make")) == len(foreign.notes("Side")) == 2
    assert "FAILED" not in foreign.execution_states()


def test_a_compiled_pipeline_runs_in_part_as_well(foreign, own, process_pool) -> None:
    from tfx.dsl.compiler import compiler
    from tfx.proto.orchestration import pipeline_pb2

    from runners.local.local_runner import LocalRunner

    make = own.Make(trace=foreign.trace("Make"))
    copy = own.Copy(data=make.outputs["out"], trace=foreign.trace("Copy"))
    ir = compiler.Compiler().compile(foreign.build([make, copy]))
    part = pipeline_pb2.PartialRun(to_nodes=["Make"])
    part.snapshot_settings.latest_pipeline_run_strategy.SetInParent()
    options = pipeline_pb2.RunOptions(partial_run=part)

    result = LocalRunner(process_pool=process_pool).run_with_ir(ir, options)

    states = {node.node: node.state for node in result.nodes}
    assert states == {"Make": "ran", "Copy": "skipped"}
    # Without a name given it has one of its own, in the folder of the metadata.
    (run_dir,) = (foreign.root / "runs").iterdir()
    assert run_dir.name == result.run_id


def test_a_killed_part_is_resumed(foreign, own) -> None:
    def run(run_id: str, **part):
        make = own.Make(trace=foreign.trace("Make"))
        dies = own.DieAtFirst(trace=foreign.trace("Dies"))
        dies.add_upstream_node(make)
        read = own.Read(data=make.outputs["out"], trace=foreign.trace("Read"))
        read.add_upstream_node(dies)
        return foreign.run([make, dies, read], run_id=run_id, part=part or None)

    assert run("one", to_nodes=["Make"]).error is None
    killed = run("two", from_nodes=["DieAtFirst"])
    assert killed.states == {
        "Make": "cached",
        "DieAtFirst": "failed",
        "Read": "not_reached",
    }
    continued = run("two", from_nodes=["DieAtFirst"])
    assert continued.states == {"Make": "cached", "DieAtFirst": "ran", "Read": "ran"}
    assert len(foreign.notes("Make")) == 1
    assert [note["read"] for note in foreign.notes("Read")] == ["hello"]
