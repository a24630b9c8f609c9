"""``LocalRunner`` with foreign TFX pipelines: failures, resumes, the cache."""

import pytest

from sluice.errors import LockedError
from sluice.storage import atomic

pytestmark = pytest.mark.tf


def test_a_failed_node_stops_only_its_downstream_nodes(foreign, own):
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples

    raises = own.Raise(message="the user says no")
    needs_it = own.Copy(data=raises.outputs["out"], trace=foreign.trace("NeedsIt"))
    needs_it = needs_it.with_id("NeedsIt")
    and_it = own.Read(data=needs_it.outputs["out"], trace=foreign.trace("AndIt"))
    spec = own.DrivenSpec(
        trace=foreign.trace("Reports"), text="", out=Channel(type=Examples)
    )
    make = own.Make(trace=foreign.trace("Make"))
    further = own.Copy(data=make.outputs["out"], trace=foreign.trace("Further"))
    gate = own.ForeignGate(trace=foreign.trace("Gate"))
    behind = own.TakeParameters(trace=foreign.trace("Behind")).with_id("Behind")
    behind.add_upstream_node(gate)
    nodes = [raises, needs_it, and_it.with_id("AndIt"), own.Reporting(spec), make]

    run = foreign.run([*nodes, further.with_id("Further"), gate, behind])

    assert run.states == {
        **dict.fromkeys(("Raise", "Reporting", "ForeignGate"), "failed"),
        **dict.fromkeys(("Make", "Further"), "ran"),
        **dict.fromkeys(("NeedsIt", "AndIt"), "not_reached"),
        "Behind": "blocked",
    }
    assert run.reasons["AndIt"] == "stopped by Raise"
    message = run.message("Raise")
    assert message.startswith("Raise failed: ValueError: the user says no\n")
    assert "foreign_components.py:" in message and " in Raise\n" in message
    assert "the executor has its reasons" in run.message("Reporting")
    assert "Traceback" in run.log("Raise")
    assert run.error is not None
    assert run.record.report_uri == str(run.run_dir / "report.html")


def test_the_first_failure_is_recorded_and_raised(foreign, own):
    """Found: what is raised and what is recorded named different nodes."""
    later = own.DieAtFirst(trace=foreign.trace("Later"))
    run = foreign.run([own.Raise(message="no"), later.with_id("Later")], workers=2)
    record = run.record
    first = next(name for name in run.ends if record.node(name).state == "failed")
    assert record.error is not None and record.error.node == first
    assert str(run.error).splitlines()[0] == record.error.message.splitlines()[0]
    assert str(run.error).splitlines()[-1] == f"  log:      {record.error.log}"
    if first == "Raise":
        assert type(run.error.__cause__).__name__ == "ValueError"
        assert "Traceback" in str(run.error.__cause__.__cause__)


def test_nodes_without_their_inputs(foreign, own):
    """TFX's own runner returns normally after this."""
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.experimental.conditionals.conditional import Cond
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples, Model

    nothing = Channel(type=Examples, producer_component_id="nobody")
    read = own.Read(data=nothing, trace=foreign.trace("Read"))
    latest = Resolver(strategy_class=LatestArtifactStrategy, data=nothing)
    latest = latest.with_id("Latest")
    optional = own.ReadIfThere(
        data=latest.outputs["data"], trace=foreign.trace("Optional")
    )
    broken = Resolver(strategy_class=own.BrokenStrategy, model=Channel(type=Model))
    make = own.Make(trace=foreign.trace("Make"))
    measure = own.Measure(data=make.outputs["out"])
    with Cond(measure.outputs["length"].future()[0].value == 6):
        unmet = own.Copy(data=make.outputs["out"], trace=foreign.trace("Unmet"))
    after = own.Read(data=unmet.outputs["out"], trace=foreign.trace("After"))
    nodes = [read, latest, optional, broken.with_id("Broken"), make, measure, unmet]

    run = foreign.run([*nodes, after.with_id("After")])

    assert run.states == {
        **dict.fromkeys(("Read", "Broken"), "failed"),
        **dict.fromkeys(("Latest", "ReadIfThere", "Make", "Measure"), "ran"),
        **dict.fromkeys(("Copy", "After"), "skipped"),
    }
    assert "inputs[data] has min_count = 1 but only got 0" in run.message("Read")
    assert run.reasons["Latest"] == "found nothing"
    assert run.message("Broken").endswith("ValueError: the strategy is broken")
    assert [note["read"] for note in foreign.notes("Optional")] == [None]


def test_a_run_is_resumed_and_another_uses_the_cache(foreign, own):
    def nodes():
        make = own.Make(trace=foreign.trace("Make"))
        dies = own.DieAtFirst(trace=foreign.trace("Dies"))
        dies.add_upstream_node(make)
        read = own.Copy(data=make.outputs["out"], trace=foreign.trace("Copy"))
        read.add_upstream_node(dies)
        return [make, dies, read]

    killed = foreign.run(nodes(), cache=True)
    assert killed.states == {
        "Make": "ran",
        "DieAtFirst": "failed",
        "Copy": "not_reached",
    }

    continued = foreign.run(nodes(), cache=True)
    assert continued.error is None
    assert set(continued.states.values()) == {"ran"}
    assert continued.ends == ["DieAtFirst", "Copy"]
    assert continued.record.node("DieAtFirst").attempts == 2
    assert len(foreign.notes("Make")) == 1
    # What the killed attempt had written is gone, not read together with the rest.
    assert [note["found"] for note in foreign.notes("Dies")] == [[], []]
    assert [path.name for path in continued.uri("DieAtFirst").iterdir()] == ["part-2"]
    # Its checkpoints were kept until it had succeeded.
    assert [note["checkpoints"] for note in foreign.notes("Dies")] == [[], ["ckpt-1"]]
    assert not list((foreign.root / "runs" / "one" / "checkpoints").glob("*/*"))
    assert foreign.execution_states() == {"COMPLETE": 3}
    assert foreign.run(nodes(), cache=True).ends == []

    other = foreign.run(nodes(), run_id="two", cache=True)
    assert set(other.states.values()) == {"cached"}
    assert other.uri("Copy") == continued.uri("Copy")
    uncached = foreign.run(nodes(), run_id="three")
    assert set(uncached.states.values()) == {"ran"}


def test_only_the_same_pipeline_can_be_resumed(foreign, own):
    def make(text):
        return own.Make(trace=foreign.trace("Make"), text=text)

    assert foreign.run([make("hello")], cache=True).states == {"Make": "ran"}
    changed = foreign.run([make("other")], cache=True)
    assert "the pipeline has changed since" in str(changed.error)
    assert [note["made"] for note in foreign.notes("Make")] == ["hello"]
    with atomic.lock(changed.run_dir / ".lock", wait=False):
        locked = foreign.run([make("hello")], cache=True)
    assert isinstance(locked.error, LockedError)
