"""Nodes whose inputs do not exist: skipped, not reached, or run without them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tf


def test_a_false_condition_skips_nodes_and_those_downstream(foreign, own) -> None:
    from tfx.dsl.experimental.conditionals.conditional import Cond

    make = own.Make(trace=foreign.trace("Make"))
    measure = own.Measure(data=make.outputs["out"])
    length = measure.outputs["length"].future()[0].value

    def copy(before, name: str):
        node = own.Copy(data=before.outputs["out"], trace=foreign.trace(name))
        return node.with_id(name)

    with Cond(length == 5):
        holds = copy(make, "Holds")
        with Cond(length == 6):
            holds_not = copy(holds, "HoldsNot")
            inside = copy(holds_not, "Inside")
        outer = copy(holds_not, "Outer")
    with Cond(holds_not.outputs["out"].future()[0].uri != ""):
        asks = copy(make, "Asks")
    outside = copy(outer, "Outside")
    optional = own.ReadIfThere(
        data=holds_not.outputs["out"], trace=foreign.trace("Optional")
    ).with_id("Optional")
    after = own.TakeParameters(trace=foreign.trace("After")).with_id("After")
    after.add_upstream_node(holds_not)
    nodes = [make, measure, holds, holds_not, inside, outer, asks, outside]

    run = foreign.run([*nodes, optional, after])

    assert run.error is None
    assert run.states == {
        **dict.fromkeys(("Make", "Measure", "Holds", "Optional", "After"), "ran"),
        **dict.fromkeys(("HoldsNot", "Inside", "Outer", "Asks", "Outside"), "skipped"),
    }
    assert run.reasons["HoldsNot"] == "condition is false"
    assert run.reasons["Outer"] == "upstream HoldsNot was skipped"
    assert run.reasons["Asks"] == "upstream HoldsNot was skipped"
    assert run.reasons["Outside"] == "upstream Outer was skipped"
    (optional_note,) = foreign.notes("Optional")
    assert optional_note["read"] is None
    assert foreign.execution_states() == {"COMPLETE": 5}


def _partly_unresolved(own, place) -> list:
    """Returns nodes with inputs that are there, optional, missing, or too many."""
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.control_flow.for_each import ForEach
    from tfx.dsl.experimental.conditionals.conditional import Cond
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.types import Channel, standard_artifacts
    from tfx.types.channel_utils import union

    nodes = []

    def add(kind, name: str, **arguments):
        node = kind(trace=place.trace(name), **arguments).with_id(name)
        nodes.append(node)
        return node

    nobodys = Channel(type=standard_artifacts.Model, producer_component_id="nobody")
    latest = Resolver(strategy_class=LatestArtifactStrategy, found=nobodys)
    nothing = latest.with_id("Latest").outputs["found"]
    measured = add(own.Make, "Make").outputs["out"]
    more = add(own.Make, "More").outputs["out"]
    train = own.Train()
    length = own.Measure(data=measured)
    nodes += [latest, train, length]
    model = train.outputs["model"]

    add(own.Compare, "Optional", latest=model, baseline=nothing)
    add(own.Compare, "Needs", latest=nothing)
    with Cond(nothing.future()[0].uri != ""):
        add(own.Copy, "AsksOfNothing", data=measured)
    with Cond(length.outputs["length"].future()[0].value == 6):
        unmet = [add(own.Copy, f"Unmet{n}", data=measured).outputs["out"] for n in "12"]
    add(own.Read, "UnionOfUnmet", data=union(unmet))
    add(own.Read, "UnionWithUnmet", data=union([unmet[0], measured]))
    for name, over in (("None", nothing), ("One", model)):
        with ForEach(over) as each:
            add(own.Compare, f"EachOf{name}", latest=each)
    with ForEach(union([measured, more])) as each:
        two = add(own.Copy, "EachOfTwo", data=each)
    add(own.ReadIfThere, "OptionalTwo", data=two.outputs["out"])
    add(own.Read, "NeedsTwo", data=two.outputs["out"])
    add(own.TakeParameters, "AfterTwo").add_upstream_node(two)
    bless = own.Bless(model=nothing, good=1)
    judge = own.Bless(model=model, good=1, examples=two.outputs["out"])
    nodes += [bless, judge.with_id("Judge")]
    add(own.PushIfBlessed, "Push", model=model, blessing=bless.outputs["blessing"])
    return nodes


def test_unresolved_inputs_stop_the_nodes_that_require_them(make_foreign, own) -> None:
    """As in TFX's own runner, but for what waits for a node that has failed."""
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    from sluice.errors import NodeError

    theirs, ours = make_foreign(), make_foreign()
    LocalDagRunner().run(theirs.build(_partly_unresolved(own, theirs)))
    run = ours.run(_partly_unresolved(own, ours))

    assert run.states == {
        **dict.fromkeys(("Latest", "Make", "More", "Train", "Measure"), "ran"),
        **dict.fromkeys(("Optional", "OptionalTwo", "EachOfOne"), "ran"),
        "UnionWithUnmet": "ran",
        **dict.fromkeys(("Unmet1", "Unmet2", "UnionOfUnmet", "EachOfNone"), "skipped"),
        **dict.fromkeys(("Needs", "AsksOfNothing", "EachOfTwo", "Bless"), "failed"),
        **dict.fromkeys(("NeedsTwo", "AfterTwo", "Push", "Judge"), "not_reached"),
    }
    executed = {
        place: {path.stem for path in place.root.glob("*.trace")}
        for place in (theirs, ours)
    }
    # What comes after a node that has failed, judges by it, or is judged by it, waits.
    assert executed[theirs] - executed[ours] == {"AfterTwo", "Push"}
    assert executed[ours] < executed[theirs]

    assert run.reasons["Latest"] == "found nothing"
    assert run.reasons["EachOfNone"] == "its ForEach has nothing to go over"
    assert run.reasons["Unmet1"] == "condition is false"
    assert run.reasons["UnionOfUnmet"] == "upstream Unmet1 or Unmet2 was skipped"
    assert run.reasons["NeedsTwo"] == "stopped by EachOfTwo"
    assert run.message("Needs").startswith(
        "Needs failed: no artifact for its input 'latest', which is an output of Latest"
    )
    assert run.message("AsksOfNothing").startswith(
        "AsksOfNothing failed: its condition refers to an artifact that does not exist"
    )
    assert run.message("EachOfTwo").startswith(
        "EachOfTwo failed: its ForEach has several artifacts"
    )
    assert isinstance(run.error, NodeError)


def test_a_resolver_that_finds_nothing_succeeds(foreign, own) -> None:
    """In a first run, which makes what the second one finds."""
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.types import Channel, standard_artifacts

    def nodes():
        latest = Resolver(
            strategy_class=LatestArtifactStrategy,
            model=Channel(type=standard_artifacts.Model),
        ).with_id("Latest")
        train = own.Train()
        train.add_upstream_node(latest)
        compare = own.Compare(
            latest=train.outputs["model"],
            baseline=latest.outputs["model"],
            trace=foreign.trace("Compare"),
        )
        return [latest, train, compare]

    first, second = (foreign.run(nodes(), run_id=name) for name in ("one", "two"))
    assert first.error is None and second.error is None
    assert set(first.states.values()) == {"ran"}
    assert first.reasons["Latest"] == "found nothing"
    assert first.nodes["Latest"].outputs == {}
    model = first.nodes["Train"].outputs["model"][0]["id"]
    baselines = [note["baseline"] for note in foreign.notes("Compare")]
    assert baselines == [None, model]


def test_a_resolver_strategy_that_raises_fails(foreign, own) -> None:
    """Not the same as finding nothing: a baseline would be left out by a bug."""
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.types import Channel, standard_artifacts

    latest = Resolver(
        strategy_class=own.BrokenStrategy,
        model=Channel(type=standard_artifacts.Model),
    ).with_id("Latest")
    train = own.Train()
    compare = own.Compare(
        latest=train.outputs["model"],
        baseline=latest.outputs["model"],
        trace=foreign.trace("Compare"),
    )
    run = foreign.run([latest, train, compare])
    assert run.states == {"Latest": "failed", "Train": "ran", "Compare": "not_reached"}
    why = "Because of ValueError: the strategy is broken"
    assert run.message("Latest").endswith(why)
