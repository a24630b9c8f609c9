"""What TFX's own local runner does with a pipeline, ours does too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tf


USER_MODULE = """
import pickle
import subprocess
import sys
from pathlib import Path

from beside import TEXT

# What Beam's workers do with a function that runs in them.
LOADS = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1])); print('loads')"


def run_fn(fn_args):
    folder = Path(fn_args.serving_model_dir)
    folder.mkdir(parents=True)
    command = [sys.executable, "-c", LOADS, pickle.dumps(run_fn).hex()]
    worker = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    (folder / "saved_model.pb").write_text(f"{TEXT}, {worker.stdout.strip()}")
"""


def test_conditions_skip_and_what_needs_the_skipped_is_skipped(foreign, own) -> None:
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


def test_inputs_that_do_not_resolve_stop_what_needs_them(make_foreign, own) -> None:
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


def test_a_resolver_that_finds_nothing_is_no_failure(foreign, own) -> None:
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


def test_a_strategy_that_raises_is_a_failure(foreign, own) -> None:
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


def test_parameters_and_values_reach_the_nodes(foreign, own) -> None:
    from tfx.orchestration.data_types import RuntimeParameter

    def take(name: str, **values):
        return own.TakeParameters(trace=foreign.trace(name), **values).with_id(name)

    make = own.Make(trace=foreign.trace("Make"))
    values = own.Measure(data=make.outputs["out"]).outputs
    nodes = [
        take("RunId", text=RuntimeParameter("pipeline-run-id", str)),
        take("Default", number=RuntimeParameter("number", int, 7)),
        take("Without", text=RuntimeParameter("nobody-knows", str)),
        take(
            "Dynamic",
            text=values["text"].future()[0].value,
            number=values["length"].future()[0].value,
        ),
        own.TakeValues(
            trace=foreign.trace("Values"),
            **{name: values[name] for name in values if name != "out"},
        ),
    ]

    run = foreign.run([make, values["text"].producer_component, *nodes])

    def of(name: str) -> tuple[str, int]:
        (found,) = foreign.notes(name)
        return found["text"], found["number"]

    assert of("RunId") == ("one", 0)
    assert of("Default") == ("", 7)
    assert of("Dynamic") == ("hello", 5)
    (found,) = foreign.notes("Values")
    letters = ["e", "h", "l", "o"]
    assert found["values"] == [5, 2.5, "hello", False, letters, "a default"]
    # As in TFX's own runner; the other nodes run all the same.
    assert [name for name, state in run.states.items() if state != "ran"] == ["Without"]
    assert "Parameter value not ready for text" in run.message("Without")


def test_resolvers_find_what_earlier_runs_have_made(foreign, own) -> None:
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
        LatestBlessedModelStrategy,
    )
    from tfx.types import Channel, standard_artifacts

    def nodes(good: int):
        latest = Resolver(
            strategy_class=LatestArtifactStrategy,
            model=Channel(type=standard_artifacts.Model),
        ).with_id("Latest")
        blessed = Resolver(
            strategy_class=LatestBlessedModelStrategy,
            model=Channel(type=standard_artifacts.Model),
            model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        ).with_id("Blessed")
        train = own.Train()
        train.add_upstream_node(blessed)
        latest.add_upstream_node(train)
        compare = own.Compare(
            latest=latest.outputs["model"],
            baseline=blessed.outputs["model"],
            trace=foreign.trace("Compare"),
        )
        bless = own.Bless(model=train.outputs["model"], good=good)
        bless.add_upstream_node(compare)
        return [latest, blessed, train, compare, bless]

    runs = [
        foreign.run(nodes(good), run_id=str(number))
        for number, good in enumerate((1, 0, 1))
    ]

    assert all(run.error is None for run in runs)
    models = [run.nodes["Train"].outputs["model"][0]["id"] for run in runs]
    assert [note["latest"] for note in foreign.notes("Compare")] == models
    # Nothing at first, then the first model, since the second was not blessed.
    baselines = [note["baseline"] for note in foreign.notes("Compare")]
    assert baselines == [None, models[0], models[0]]
    assert [run.states["Blessed"] for run in runs] == ["ran", "ran", "cached"]
    assert runs[2].reasons["Blessed"] == "resolves to the same artifacts as before"


def test_importers_register_once_or_each_time(foreign, own) -> None:
    from tfx.dsl.components.common.importer import Importer
    from tfx.types.standard_artifacts import Examples

    data = foreign.root / "data"
    data.mkdir()
    (data / own.FILE).write_text("given")

    def run(run_id: str):
        once = Importer(
            source_uri=str(data),
            artifact_type=Examples,
            properties={"split_names": '["train"]'},
            custom_properties={"by": "hand"},
        ).with_id("Once")
        again = Importer(source_uri=str(data), artifact_type=Examples, reimport=True)
        again.add_upstream_node(once)
        read = own.Read(data=once.outputs["result"], trace=foreign.trace("Read"))
        nodes = [once, again.with_id("Again"), read]
        return foreign.run(nodes, run_id=run_id, cache=True)

    first, second = run("one"), run("two")
    (data / own.FILE).write_text("changed")
    third = run("three")

    def imported(found, name: str) -> int:
        (artifact,) = found.nodes[name].outputs["result"]
        assert artifact["uri"] == str(data)
        return artifact["id"]

    assert [found.states["Once"] for found in (first, second)] == ["ran", "cached"]
    assert imported(first, "Once") == imported(second, "Once")
    assert [found.states["Again"] for found in (first, second)] == ["ran", "ran"]
    assert imported(first, "Again") != imported(second, "Again")
    (artifact,) = first.nodes["Once"].outputs["result"]
    assert artifact["properties"]["by"] == "hand"
    assert artifact["properties"]["split_names"] == '["train"]'
    # TFX would take the third from the cache: the URI is the same.
    states = [found.states["Read"] for found in (first, second, third)]
    assert states == ["ran", "cached", "ran"]
    assert [note["read"] for note in foreign.notes("Read")] == ["given", "changed"]


def test_a_user_module_is_loaded_with_what_lies_beside_it(foreign, own) -> None:
    from tfx.components import Trainer
    from tfx.proto import trainer_pb2

    code = foreign.root / "code"
    code.mkdir()
    (code / "user_module.py").write_text(USER_MODULE)

    def run(run_id: str, text: str):
        (code / "beside.py").write_text(f"TEXT = {text!r}\n")
        make = own.Make(trace=foreign.trace("Make"))
        trainer = Trainer(
            module_file=str(code / "user_module.py"),
            examples=make.outputs["out"],
            train_args=trainer_pb2.TrainArgs(num_steps=1),
            eval_args=trainer_pb2.EvalArgs(num_steps=1),
        )
        return foreign.run([make, trainer], run_id=run_id, cache=True)

    first, changed = run("one", "as it was"), run("two", "changed")

    def model(found) -> str:
        path = found.uri("Trainer", "model") / "Format-Serving" / "saved_model.pb"
        return path.read_text()

    assert (model(first), model(changed)) == ("as it was, loads", "changed, loads")
    assert changed.states == {"Make": "cached", "Trainer": "ran"}
    # TFX packs a wheel there, which needs pip.
    assert not (foreign.root / "root" / "_wheels").exists()


def test_a_user_module_reached_by_a_link_has_its_name_in_beams_workers_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the script's folder, whose links Python resolves for ``sys.path``."""
    from runners.local.node_launcher import _make_importable

    real, linked, other = (tmp_path / name for name in ("real", "linked", "other"))
    linked.symlink_to(real)
    for folder in (real, other):
        folder.mkdir()
        (folder / "module_by_a_link.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(real), *sys.path])
    monkeypatch.setenv("PYTHONPATH", "")

    def name_of(folder: Path) -> str | None:
        return _make_importable(str(folder / "module_by_a_link.py"))

    assert name_of(linked) == "module_by_a_link"
    assert name_of(other) is None


def test_a_driver_changes_properties_and_an_added_upstream_node_orders(
    foreign, own
) -> None:
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples

    make = own.Make(trace=foreign.trace("Make"))
    first = own.Copy(data=make.outputs["out"], trace=foreign.trace("Order"))
    second = own.TakeParameters(trace=foreign.trace("Order"), text="second")
    second.add_upstream_node(first)
    spec = own.DrivenSpec(
        trace=foreign.trace("Driven"),
        text="from the pipeline",
        out=Channel(type=Examples),
    )

    run = foreign.run([make, first, second, own.Driven(spec)])

    assert run.error is None
    (note,) = foreign.notes("Driven")
    assert (note["text"], note["span"]) == ("from the driver", 7)
    (artifact,) = run.nodes["Driven"].outputs["out"]
    assert artifact["properties"]["span"] == 7
    begin, end, after = foreign.notes("Order")
    assert (begin["begin"], end["end"], after["text"]) == (True, True, "second")
