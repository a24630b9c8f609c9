"""Nodes that are killed or crash, one after another in one pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.fault

SPLITS = ("train", "eval", "test")
DELETING = """
import shutil

from tfx.dsl.component.experimental.annotations import InputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Schema


@component
def Delete(schema: InputArtifact[Schema], folder: Parameter[str]):
    shutil.rmtree(folder)
"""


def _error(outcome: Any) -> dict[str, Any]:
    return outcome.document["error"]


@pytest.mark.parametrize(
    "moment", ["at the start", "between shards", "before publication"]
)
def test_a_killed_node_is_named_and_stops_only_downstream_nodes(
    killed_nodes: Any, moment: str
) -> None:
    outcome = killed_nodes.outcomes[moment]
    assert outcome.code == 7
    error = _error(outcome)
    assert error["node"] == "TFRecordGen"
    assert error["message"].startswith(
        "TFRecordGen was killed by signal 9, by hand or since the machine was "
    )
    assert outcome.document["resume_command"] in outcome.err
    states = outcome.states
    assert states.pop("TFRecordGen") == "failed"
    assert states.pop("ImportSchemaGen") == "ran"
    assert states.pop("LatestBlessedModel") == "ran"
    assert set(states.values()) == {"not_reached"}
    assert killed_nodes.versions[moment] == []


def test_outputs_of_a_killed_node_are_not_read(killed_nodes: Any) -> None:
    left = killed_nodes.shards
    assert left["at the start"] == []
    # One shard of three had its name.
    (shard,) = left["between shards"]
    assert shard.endswith("-of-00003.gz")
    assert left["before publication"] == ["data_tfrecord-00000-of-00001.gz"] * 3
    assert left["segfault"] == left["before publication"]
    place = killed_nodes.place
    assert [place.records_in(split) for split in SPLITS] == [120, 120, 120]


def test_only_the_served_model_can_be_read_by_others(killed_nodes: Any) -> None:
    """``private: true`` holds for every process of each run and resume."""
    root = killed_nodes.place.project / "pristine"
    modes: dict[str, set[str]] = {"files": set(), "directories": set(), "served": set()}
    for path in root.rglob("*"):
        kind = "directories" if path.is_dir() else "files"
        name = path.relative_to(root).as_posix()
        if name == "serving" or name.startswith("serving/1"):
            kind = "served"
        if not name.startswith("serving/."):
            modes[kind].add(f"{path.stat().st_mode & 0o777:o}")
    assert modes == {"files": {"600"}, "directories": {"700"}, "served": {"755", "644"}}
    assert f"{root.stat().st_mode & 0o777:o}" == "711"


def test_a_segfault_in_user_code_is_named_with_its_line(killed_nodes: Any) -> None:
    outcome = killed_nodes.outcomes["segfault"]
    assert outcome.code == 7
    error = _error(outcome)
    assert error["node"] == "Trainer"
    assert "was killed by signal 11 (SIGSEGV, segmentation fault)" in error["message"]
    tail = "\n".join(error["log_tail"])
    assert "Fatal Python error: Segmentation fault" in tail
    assert 'my_models.py", line' in tail and "in _crash" in tail
    assert "my_models.py" in outcome.err


def test_an_exit_in_user_code_is_named(killed_nodes: Any) -> None:
    outcome = killed_nodes.outcomes["exit"]
    assert outcome.code == 7
    error = _error(outcome)
    assert error["message"].startswith("Trainer ended its process with status 3")
    assert "Segmentation fault" not in "\n".join(error["log_tail"])


def test_resumes_do_not_repeat_finished_nodes(killed_nodes: Any) -> None:
    nodes = {
        node["id"]: node for node in killed_nodes.outcomes["exit"].document["nodes"]
    }
    tries = {name: node["attempts"] for name, node in nodes.items()}
    assert tries.pop("TFRecordGen") == 4
    assert tries.pop("Trainer") == 2
    assert [tries.pop(name) for name in ("Evaluator", "ModelVerdict", "Pusher")] == [
        0,
        0,
        0,
    ]
    assert set(tries.values()) == {1}


def test_corrected_code_needs_a_new_run(killed_nodes: Any) -> None:
    outcome = killed_nodes.outcomes["corrected"]
    assert outcome.code == 2
    assert "its inputs have changed since" in outcome.err
    assert "- code: my_models" in outcome.err
    assert "sluice run digits" in outcome.err
    states = killed_nodes.outcomes["after the push"].states
    trained_anew = {"Trainer": "ran", "Evaluator": "ran", "ModelVerdict": "ran"}
    assert {name: states.pop(name) for name in trained_anew} == trained_anew
    assert states.pop("Pusher") == "failed"
    assert set(states.values()) == {"cached"}


def test_a_push_that_was_not_published_is_not_repeated(killed_nodes: Any) -> None:
    killed = killed_nodes.outcomes["after the push"]
    assert killed.code == 7
    assert _error(killed)["message"].startswith("Pusher was killed by signal 9")
    assert killed_nodes.versions["after the push"] == ["1"]
    outcome = killed_nodes.outcomes["complete"]
    assert (outcome.code, outcome.document["status"]) == (0, "succeeded")
    (push,) = outcome.document["pushes"]
    assert (push["state"], push["version"]) == ("already_served", 1)
    again = killed_nodes.outcomes["again"]
    assert (again.code, again.document["status"]) == (0, "up_to_date")


@pytest.fixture
def edited(served: Any) -> Iterator[Any]:
    """The same pipeline after its data files and code were edited."""
    data, code = served.project / "data" / "digits", served.project / "my_models.py"
    before = {path: path.read_bytes() for path in [code, *data.iterdir()]}
    code.write_text(code.read_text() + "\n# Edited.\n")
    (data / "train-0.tfrecord").write_bytes(before[data / "train-1.tfrecord"])
    (data / "train-2.tfrecord").rename(data / "train-9.tfrecord")
    yield served
    (data / "train-9.tfrecord").unlink()
    for path, content in before.items():
        path.write_bytes(content)


def test_explain_names_every_reason_of_every_node(edited: Any) -> None:
    config = (
        "--set",
        "train.learning_rate=0.002",
        "--set",
        "evaluate.slices=[[label]]",
    )
    outcome = edited.here("explain", "digits", "Evaluator", "--json", *config)
    answers = {answer["node"]: answer for answer in outcome.document["nodes"]}
    assert answers["TFRecordGen"]["because"] == [
        "file train-0.tfrecord: content changed",
        "file train-2.tfrecord: is gone, or no longer selected",
        "file train-9.tfrecord: is new",
    ]
    assert answers["Transform"]["because"] == []
    assert answers["Trainer"]["because"] == [
        "code: my_models changed",
        "property train.learning_rate: 0.001 -> 0.002",
    ]
    assert "Transform" in answers["Trainer"]["waits_for"]
    (why,) = answers["Evaluator"]["because"]
    assert why.startswith("property eval_config.")
    assert "Trainer" in answers["Evaluator"]["waits_for"]
    assert all(answer["last_run"] for answer in answers.values() if answer["waits_for"])
    shown = edited.here("explain", "digits", "Trainer", *config).out.splitlines()
    assert shown[0] == "Trainer would run"
    for line in (
        "  Transform would run before it",
        "  code: my_models changed",
        "  file train-9.tfrecord: is new",
    ):
        assert line in shown


def test_a_workspace_that_is_deleted_during_a_run_is_named(make_place: Any) -> None:
    place = make_place("deleted", epochs=1)
    (place.project / "my_nodes.py").write_text(DELETING)
    root = place.workspace.root
    node = {
        "component": "my_nodes:Delete",
        "inputs": {"schema": "ImportSchemaGen.schema"},
        "parameters": {"folder": str(root)},
    }
    part = ("--set", f"nodes={json.dumps({'Delete': node})}", "--to", "Delete")
    outcome = place.here("run", "digits", *part, "--json")
    assert (outcome.code, outcome.document["status"]) == (2, "failed"), outcome.err
    message = outcome.document["error"]["message"]
    assert f"where:    {root}/runs/" in message
    assert "deleted" in message.splitlines()[0]
    assert "readonly" not in outcome.err and message.splitlines()[0] in outcome.err
    assert "resume:" not in outcome.err


@pytest.mark.usefixtures("served")
def test_in_the_end_every_node_has_one_execution(killed_nodes: Any) -> None:
    killed_nodes.place.assert_sound(versions=[1])
    executions = killed_nodes.place.executions()
    # A resolver always looks.
    assert executions.pop("LatestBlessedModel") == 2
    assert len(executions) == 12
    assert set(executions.values()) == {1}
