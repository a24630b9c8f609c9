"""Features of TFX's own local runner that ours supports."""

from __future__ import annotations

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


def test_parameters_and_values_reach_the_nodes(foreign, own):
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


def test_resolvers_find_artifacts_of_earlier_runs(foreign, own):
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
    models = [run.artifact("Train", "model").id for run in runs]
    assert [note["latest"] for note in foreign.notes("Compare")] == models
    # Nothing at first, then the first model, since the second was not blessed.
    baselines = [note["baseline"] for note in foreign.notes("Compare")]
    assert baselines == [None, models[0], models[0]]
    assert [run.states["Blessed"] for run in runs] == ["ran", "ran", "cached"]
    assert runs[2].reasons["Blessed"] == "resolves to the same artifacts as before"


def test_importers_register_once_or_each_time(foreign, own):
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

    assert [found.states["Once"] for found in (first, second)] == ["ran", "cached"]
    assert [found.states["Again"] for found in (first, second)] == ["ran", "ran"]
    imported = foreign.store().get_artifacts_by_type("Examples")
    # Once, and again in each of three runs.
    assert [item.uri for item in imported] == 4 * [str(data)]
    assert imported[0].custom_properties["by"].string_value == "hand"
    # TFX would take the third from the cache: the URI is the same.
    states = [found.states["Read"] for found in (first, second, third)]
    assert states == ["ran", "cached", "ran"]
    assert [note["read"] for note in foreign.notes("Read")] == ["given", "changed"]


def test_a_module_file_may_import_modules_beside_it(foreign, own):
    from tfx.components import Trainer
    from tfx.proto import trainer_pb2

    code = foreign.root / "code"
    code.mkdir()

    def run(run_id: str, text: str):
        (code / "beside.py").write_text(f"TEXT = {text!r}\n")
        # The cache key has the content of this file, and not that of those beside it.
        (code / "user_module.py").write_text(f"{USER_MODULE}# {text}\n")
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


def test_custom_drivers_and_control_dependencies(foreign, own):
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
    begin, end, after = foreign.notes("Order")
    assert (begin["begin"], end["end"], after["text"]) == (True, True, "second")
