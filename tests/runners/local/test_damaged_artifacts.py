"""Damaged artifacts are neither read nor pushed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from sluice.errors import ExitCode, NodeError, ServingError

pytestmark = pytest.mark.tf


def _truncate(folder: Path) -> None:
    (folder / "variables" / "variables.index").write_text("")


def _garble(folder: Path) -> None:
    path = folder / "saved_model.pb"
    path.write_text("?" * len(path.read_text()))


def _remove_variables(folder: Path) -> None:
    shutil.rmtree(folder / "variables")


def _remove(folder: Path) -> None:
    shutil.rmtree(folder.parent)


@pytest.fixture
def run_push(foreign, own):
    """Runs Train > Bless > TFX's own Pusher, or a part of it."""
    from tfx.components import Pusher
    from tfx.proto import pusher_pb2

    def run_push(run_id: str, **part):
        train = own.Train()
        bless = own.Bless(model=train.outputs["model"], good=1)
        filesystem = pusher_pb2.PushDestination.Filesystem(
            base_directory=str(foreign.root / "serving")
        )
        push = Pusher(
            model=train.outputs["model"],
            model_blessing=bless.outputs["blessing"],
            push_destination=pusher_pb2.PushDestination(filesystem=filesystem),
        )
        nodes = [train, bless, push]
        return foreign.run(nodes, run_id=run_id, part=part or None)

    return run_push


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (_truncate, "2 files (7 bytes)"),
        (_garble, "SHA-256"),
        (_remove_variables, "1 file (7 bytes)"),
        (_remove, "nothing is there"),
    ],
)
def test_a_damaged_model_is_not_pushed(
    foreign, run_push, damage: Callable[[Path], None], found: str
) -> None:
    made = run_push("made", to_nodes=["Bless"])
    model = made.uri("Train", "model")
    damage(model / "Format-Serving")
    pushed = run_push("pushed", from_nodes=["Pusher"])
    assert pushed.states["Pusher"] == "failed"
    assert isinstance(pushed.error, ServingError)
    assert pushed.error.exit_code == ExitCode.SERVING
    message = pushed.message("Pusher")
    assert str(model) in message and found in message
    assert "Train" in message and "run made" in message
    assert not (foreign.root / "serving").exists()
    assert run_push("again").states["Pusher"] == "ran"


def test_an_undamaged_model_is_pushed(foreign, run_push) -> None:
    run_push("made", to_nodes=["Bless"])
    assert run_push("pushed", from_nodes=["Pusher"]).states["Pusher"] == "ran"
    (version,) = (foreign.root / "serving").iterdir()
    assert (version / "saved_model.pb").read_text() == "a model"


def test_a_damaged_input_fails_the_node(foreign, own) -> None:
    def run(run_id: str, **part):
        make = own.Make(trace=foreign.trace("Make"))
        read = own.Read(data=make.outputs["out"], trace=foreign.trace("Read"))
        return foreign.run([make, read], run_id=run_id, part=part or None)

    made = run("made", to_nodes=["Make"])
    (made.uri("Make") / own.FILE).write_text("")
    read = run("read", from_nodes=["Read"])
    assert read.states["Read"] == "failed"
    assert isinstance(read.error, NodeError)
    message = read.message("Read")
    assert "expected: 1 file (5 bytes)" in message
    assert "found:    1 file (0 bytes)" in message
    assert "run the whole pipeline again, with another run_id" in message
    assert "sluice run" not in message
    assert foreign.notes("Read") == []


def test_a_damaged_input_of_a_project_names_the_command(foreign, own) -> None:
    from tfx.orchestration import metadata
    from tfx.types.standard_artifacts import Examples

    from runners.local.artifact_contents import check_inputs

    made = foreign.run([own.Make(trace=foreign.trace("Make"))])
    (made.uri("Make") / own.FILE).write_text("")
    artifact = Examples()
    (stored,) = foreign.store().get_artifacts()
    artifact.set_mlmd_artifact(stored)
    path = str(foreign.metadata_db)
    connection = metadata.Metadata(metadata.sqlite_metadata_connection_config(path))
    reads = SimpleNamespace(
        input_dict={"data": [artifact]},
        output_dict={},
        pipeline_node=SimpleNamespace(node_info=SimpleNamespace(id="Read")),
        pipeline_info=SimpleNamespace(id="digits"),
    )
    with pytest.raises(NodeError, match="Read was not run: [^`]*`sluice run digits`"):
        check_inputs(connection, reads, in_project=True)


def test_external_artifacts_may_change(foreign, own) -> None:
    """An Importer registers what other programs write."""
    from tfx.dsl.components.common.importer import Importer
    from tfx.types.standard_artifacts import Examples

    source = foreign.root / "mine"
    source.mkdir()

    def run(run_id: str, text: str) -> str:
        (source / own.FILE).write_text(text)
        importer = Importer(source_uri=str(source), artifact_type=Examples)
        read = own.Read(data=importer.outputs["result"], trace=foreign.trace("Read"))
        return foreign.run([importer, read], run_id=run_id).states["Read"]

    assert [run("one", "a"), run("two", "longer")] == ["ran", "ran"]


def test_a_model_with_changed_bytes_is_not_cached(foreign, own) -> None:
    def run(run_id: str):
        return foreign.run([own.Train()], run_id=run_id, cache=True)

    _garble(run("one").uri("Train", "model") / "Format-Serving")
    assert [run("two").states, run("three").states] == [
        {"Train": "ran"},
        {"Train": "cached"},
    ]
