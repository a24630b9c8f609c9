"""TFX pipelines of somebody else, in our runner instead of TFX's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sluice.errors import NodeError, UsageError

pytestmark = pytest.mark.tf

DEADLINE_S = 120.0
SCRIPT = """
import sys
from pathlib import Path

from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline
from tfx.types.standard_artifacts import Examples

import beside


@component
def Make(out: OutputArtifact[Examples], text: Parameter[str]):
    Path(out.uri, "data.txt").write_text(text + beside.TEXT)


if __name__ == "__main__":
    from runners.local.local_runner import LocalRunner

    root = sys.argv[1]
    path = root + "/metadata.db"
    pipeline = Pipeline(
        pipeline_name="script",
        pipeline_root=root,
        metadata_connection_config=metadata.sqlite_metadata_connection_config(path),
        components=[Make(text="from a script"), Make(text="again").with_id("Again")],
    )
    result = LocalRunner().run(pipeline)
    for node in result.nodes:
        (artifact,) = node.outputs["out"]
        print(node.node, node.state, Path(artifact["uri"], "data.txt").read_text())
"""
USER_MODULE = """
from pathlib import Path

from beside import TEXT


def run_fn(fn_args):
    folder = Path(fn_args.serving_model_dir)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_text(TEXT)
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
    assert run.reasons["HoldsNot"] == "its condition does not hold"
    assert run.reasons["Outer"] == "needs what HoldsNot would have made"
    assert run.reasons["Asks"] == "needs what HoldsNot would have made"
    assert run.reasons["Outside"] == "needs what Outer would have made"
    (optional_note,) = foreign.notes("Optional")
    assert optional_note["read"] is None
    assert foreign.execution_states() == {"COMPLETE": 5}


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

    assert (model(first), model(changed)) == ("as it was", "changed")
    assert changed.states == {"Make": "cached", "Trainer": "ran"}
    # TFX packs a wheel there, which needs pip.
    assert not (foreign.root / "root" / "_wheels").exists()


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


def test_a_failed_node_stops_what_needs_it_and_nothing_else(foreign, own) -> None:
    from tfx.proto.orchestration import platform_config_pb2
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples

    no_docker = f"unix://{foreign.root}/no-docker.sock"
    docker = platform_config_pb2.DockerPlatformConfig(docker_server_url=no_docker)
    raises = own.Raise(message="the user says no")
    needs_it = own.Copy(data=raises.outputs["out"], trace=foreign.trace("NeedsIt"))
    spec = own.DrivenSpec(
        trace=foreign.trace("Reports"), text="", out=Channel(type=Examples)
    )
    make = own.Make(trace=foreign.trace("Make"))
    further = own.Copy(data=make.outputs["out"], trace=foreign.trace("Further"))
    nodes = [
        raises,
        needs_it.with_id("NeedsIt"),
        own.Read(data=needs_it.outputs["out"], trace=foreign.trace("AndIt")).with_id(
            "AndIt"
        ),
        own.Reporting(spec),
        own.InContainer().with_platform_config(docker),
        make,
        further.with_id("Further"),
    ]

    run = foreign.run(nodes)

    assert run.states == {
        **dict.fromkeys(("Raise", "Reporting", "InContainer"), "failed"),
        **dict.fromkeys(("Make", "Further"), "ran"),
        **dict.fromkeys(("NeedsIt", "AndIt"), "not_reached"),
    }
    assert run.reasons["NeedsIt"] == "stopped by Raise"
    message = run.message("Raise")
    assert message.startswith("Raise failed: ValueError: the user says no\n")
    assert "foreign_components.py:" in message and " in Raise\n" in message
    assert "the executor has its reasons" in run.message("Reporting")
    assert "InContainer failed: DockerException: " in run.message("InContainer")
    assert "runners/local" not in run.message("InContainer")
    assert "Traceback" in run.log("Raise")
    assert isinstance(run.error, NodeError)
    assert str(run.error).count("where:") <= 1
    assert str(run.run_dir / "logs") in str(run.error)


def test_inputs_that_do_not_resolve_are_a_failure(foreign, own) -> None:
    """TFX's own runner returns normally after this."""
    from tfx.dsl.components.common.resolver import Resolver
    from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import (
        LatestArtifactStrategy,
    )
    from tfx.types import Channel
    from tfx.types.standard_artifacts import Examples

    def nodes():
        never_made = Channel(type=Examples)
        read = own.Read(data=never_made, trace=foreign.trace("Read"))
        latest = Resolver(strategy_class=LatestArtifactStrategy, data=never_made)
        found = latest.with_id("Latest").outputs["data"]
        optional = own.ReadIfThere(data=found, trace=foreign.trace("Optional"))
        return [read, latest, optional]

    run = foreign.run(nodes())

    assert run.states == {
        "Read": "failed",
        "Latest": "failed",
        "ReadIfThere": "not_reached",
    }
    assert run.reasons["Read"] == (
        "Read failed: Error while resolving inputs for Read: InputSpec min_count has "
        "not met: inputs[data] has min_count = 1 but only got 0 artifacts. "
        "(Artifact IDs: [])"
    )
    assert "LatestArtifactStrategy" in run.message("Latest")
    assert isinstance(run.error, NodeError)
    assert foreign.notes("Read") == []
    assert foreign.execution_states() == {"FAILED": 2}

    # Somebody makes it, and the run goes on as if nothing had been.
    foreign.run([own.Make(trace=foreign.trace("Make"))], run_id="two")
    continued = foreign.run(nodes())
    assert set(continued.states.values()) == {"ran"}
    (artifact,) = continued.nodes["Read"].inputs["data"]
    assert artifact["uri"].endswith("/Make/out/3")
    assert [note["read"] for note in foreign.notes("Read")] == ["hello"]
    ids = [continued.nodes["Read"].execution_id]
    (execution,) = foreign.store().get_executions_by_id(ids)
    assert "__execution_result__" not in execution.custom_properties


def test_what_cannot_be_run_is_refused(foreign, own, nursery) -> None:
    from ml_metadata.proto import metadata_store_pb2
    from tfx.orchestration.pipeline import Pipeline

    from runners.local.local_runner import LocalRunner

    def make():
        return own.Make(trace=foreign.trace("Make"))

    empty = foreign.run([])
    assert isinstance(empty.error, UsageError)
    assert "the pipeline has no nodes" in str(empty.error)

    made = make()
    inner = Pipeline("inner", components=[made], outputs={"out": made.outputs["out"]})
    read = own.Read(data=inner.outputs["out"], trace=foreign.trace("Read"))
    nested = foreign.run([inner, read], run_id="nested")
    assert isinstance(nested.error, UsageError)
    assert "does not run nested pipelines" in str(nested.error)

    in_memory = metadata_store_pb2.ConnectionConfig(
        fake_database=metadata_store_pb2.FakeDatabaseConfig()
    )
    for connection, message in (
        (in_memory, "the pipeline's metadata is not in an SQLite file"),
        (None, "the pipeline does not say where its metadata is"),
    ):
        pipeline = Pipeline(
            "foreign",
            str(foreign.root),
            components=[make()],
            metadata_connection_config=connection,
        )
        with pytest.raises(UsageError, match=message):
            LocalRunner().run(pipeline)

    pipeline = Pipeline(
        "foreign",
        str(foreign.root),
        components=[make()],
        metadata_connection_config=in_memory,
    )
    runner = LocalRunner(nursery=nursery, runs_dir=foreign.root / "runs")
    with pytest.raises(UsageError, match="the pipeline's metadata is in memory"):
        runner.run(pipeline)
    assert foreign.notes("Make") == []


def test_ctrl_c_ends_the_run_and_the_same_run_goes_on(foreign, own) -> None:
    def nodes():
        sleep = own.SleepAtFirst(trace=foreign.trace("Sleep"))
        after = own.TakeParameters(trace=foreign.trace("After"))
        after.add_upstream_node(sleep)
        return [sleep, after]

    def press_ctrl_c() -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not foreign.notes("Sleep") and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press_ctrl_c)
    finger.start()
    with pytest.raises(KeyboardInterrupt, match="interrupted by SIGINT"):
        foreign.run(nodes())
    finger.join()
    assert foreign.execution_states() == {"FAILED": 1}

    continued = foreign.run(nodes())
    assert continued.states == {"SleepAtFirst": "ran", "TakeParameters": "ran"}
    assert foreign.execution_states() == {"COMPLETE": 2}


def test_a_module_started_by_its_name_is_main_in_a_node_too(tmp_path: Path) -> None:
    """``python -m package.module``, which may import its neighbours relatively."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "beside.py").write_text("TEXT = 'from beside'\n")
    (package / "module.py").write_text("from .beside import TEXT\n")
    program = (
        "import sys\n"
        "from runners.local.surroundings import Surroundings\n"
        f"path = {str(package / 'module.py')!r}\n"
        f"Surroundings(None, ({str(tmp_path)!r},), path, 'package.module').enter()\n"
        "print(sys.modules['__main__'].TEXT)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("from beside\n", 0), done.stderr


def test_components_of_a_script_run(tmp_path: Path) -> None:
    """They are in ``__main__``, which is another module in a node's process."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("TEXT = ', and a module beside it'\n")
    root = tmp_path / "root"
    root.mkdir()
    # A script of somebody else does not set what ours sets.
    environment = {**os.environ}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(root)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=5 * DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "Again ran again, and a module beside it",
        "Make ran from a script, and a module beside it",
    ]
    (run_dir,) = (root / "runs").iterdir()
    assert {path.name for path in (run_dir / "logs").iterdir()} >= {
        "Make.log",
        "Again.log",
    }


def test_the_same_run_goes_on_and_another_uses_the_cache(foreign, own) -> None:
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
    assert foreign.execution_states() == {"COMPLETE": 1, "FAILED": 1}

    continued = foreign.run(nodes(), cache=True)
    assert continued.error is None
    assert set(continued.states.values()) == {"ran"}
    started = [event["node"] for event in continued.of("node_started")]
    assert started == ["DieAtFirst", "Copy"]
    assert len(foreign.notes("Make")) == 1
    # What the killed attempt had written is gone, not read together with the rest.
    assert [note["found"] for note in foreign.notes("Dies")] == [[], []]
    assert [path.name for path in continued.uri("DieAtFirst").iterdir()] == ["part-2"]
    assert foreign.execution_states() == {"COMPLETE": 3}

    again = foreign.run(nodes(), cache=True)
    assert again.states == continued.states
    assert again.of("node_started") == []

    other = foreign.run(nodes(), run_id="two", cache=True)
    assert set(other.states.values()) == {"cached"}
    assert other.uri("Copy") == continued.uri("Copy")

    uncached = foreign.run(nodes(), run_id="three")
    assert set(uncached.states.values()) == {"ran"}
    assert len(foreign.notes("Make")) == 2


def test_a_run_goes_on_with_the_same_pipeline_only(foreign, own) -> None:
    def run(*nodes):
        return foreign.run(nodes, cache=True)

    def make(text: str):
        return own.Make(trace=foreign.trace("Make"), text=text)

    # What was refused has not begun, and does not stand in the way.
    assert isinstance(run().error, UsageError)
    assert run(make("hello")).states == {"Make": "ran"}
    further = own.TakeParameters(trace=foreign.trace("Further"))
    changed = run(make("other"), further)
    assert isinstance(changed.error, UsageError)
    assert "run one cannot go on: the pipeline has changed since" in str(changed.error)
    assert "changed are Make, TakeParameters" in str(changed.error)
    assert changed.events == []
    assert [note["made"] for note in foreign.notes("Make")] == ["hello"]
    assert run(make("hello")).states == {"Make": "ran"}


def test_the_journal_holds_what_was_told(foreign, own) -> None:
    from runners.local.journal import Journal

    make = own.Make(trace=foreign.trace("Make"))
    run = foreign.run([make, own.Raise(message="no")], workers=1)

    told = json.loads(json.dumps(run.events))
    assert Journal(run.run_dir).events() == told
    assert [event["event"] for event in run.events] == [
        "graph",
        "node_started",
        "node_finished",
        "node_started",
        "node_finished",
        "finished",
    ]
    assert all(event["at"].startswith("20") for event in run.events)
    nodes = {node["id"]: node for node in run.events[0]["nodes"]}
    assert nodes["Make"] == {
        "id": "Make",
        "kind": "Make",
        "upstream": [],
        "gate": False,
    }


def test_one_process_at_a_time_runs_a_run(foreign, own, tmp_path: Path) -> None:
    from sluice import atomic
    from sluice.errors import LockedError

    nodes = [own.Make(trace=foreign.trace("Make"))]
    first = foreign.run(nodes, run_id="one")
    assert first.error is None
    with atomic.lock(first.run_dir / ".lock", wait=False):
        second = foreign.run([own.Make(trace=foreign.trace("Make"))], run_id="one")
    assert isinstance(second.error, LockedError)
    assert "another process runs this run" in str(second.error)


def test_a_script_that_runs_its_pipeline_on_import_is_told(
    foreign, own, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runners.local.processes.job import INSIDE_JOB

    monkeypatch.setenv(INSIDE_JOB, "1")
    run = foreign.run([own.Make(trace=foreign.trace("Make"))])
    assert 'if __name__ == "__main__":' in str(run.error)
    assert own.notes(foreign.trace("Make")) == []
