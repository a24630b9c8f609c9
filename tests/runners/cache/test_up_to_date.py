"""Whether a pipeline is up to date with its last complete run."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs
from serving.local_store import LocalModelStore
from sluice.record.parts import ArtifactRecord, PushRecord
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

INPUTS = RunInputs(
    config={"train": {"epochs": 3}},
    places={"root": "/p"},
    schema="s",
    code={"pipeline.training.run_fn": "c"},
    data={"train: a": "d"},
    packages={"tfx": "1"},
)


@pytest.fixture
def workspace(tmp_path):
    """A workspace whose only run was complete and pushed version 1."""
    made = Workspace(tmp_path / "w")
    made.prepare()
    made.metadata_db.write_bytes(b"metadata")
    output = made.artifacts / "Trainer" / "model" / "3"
    output.mkdir(parents=True)
    (output / "saved_model.pb").write_bytes(b"model")
    published = LocalModelStore(made.serving).publish(output, facts={})
    record = RunRecord("20260101T000000Z-aaaa", "p", "t", "c", status="succeeded")
    record.artifacts = {str(output): ArtifactRecord(3, "Model", "Trainer")}
    push = PushRecord(str(made.serving), "pushed", 1, published.uri)
    record.pushes = [push]
    run_dir = made.run_dir(record.run_id)
    run_dir.mkdir()
    record.save(run_dir)
    up_to_date.remember(made, record, INPUTS)
    return made


def test_nothing_has_changed(workspace):
    last = up_to_date.still_stands(workspace, INPUTS)
    assert last is not None and last.run_id == "20260101T000000Z-aaaa"


@pytest.mark.parametrize("own", [{"examples": "TFRecordGen.examples"}, {}])
def test_a_custom_node_without_inputs_may_read_other_data(workspace, own):
    inputs = replace(INPUTS, config={"nodes": {"Count": {"inputs": own}}})
    (record,) = [RunRecord.load(workspace.run_dir(x)) for x in workspace.run_ids()]
    up_to_date.remember(workspace, record, inputs)
    assert (up_to_date.still_stands(workspace, inputs) is not None) == bool(own)


@pytest.mark.parametrize(
    "inputs",
    [
        replace(INPUTS, config={"train": {"epochs": 4}}),
        replace(INPUTS, data={"train: a": "d", "train: b": "d"}),
        replace(INPUTS, packages={"tfx": "2"}),
    ],
)
def test_other_inputs_are_a_new_run(workspace, inputs):
    assert up_to_date.still_stands(workspace, inputs) is None


def _output(workspace):
    return next(workspace.artifacts.rglob("saved_model.pb"))


def _accept_other_data(workspace):
    entry = workspace.root / "state" / "accepted" / "data-0123456789ab"
    entry.mkdir(parents=True)
    (entry / "record.json").write_text("{}")


CHANGES = {
    "other data accepted": _accept_other_data,
    "output lost": lambda w: _output(w).unlink(),
    "output changed": lambda w: _output(w).write_bytes(b"MODEL"),
    "output of the same size": lambda w: os.utime(_output(w), ns=(0, 0)),
    "version lost": lambda w: shutil.rmtree(w.serving / "1"),
    "version damaged": lambda w: (w.serving / "1/saved_model.pb").write_bytes(b"other"),
    "push forgotten": lambda w: (w.serving / ".versions" / "1.json").unlink(),
    "another served": lambda w: shutil.copytree(w.serving / "1", w.serving / "2"),
    "another run": lambda w: w.metadata_db.write_bytes(b"metadata!"),
    "metadata lost": lambda w: w.metadata_db.unlink(),
    "record lost": lambda w: next(w.runs.rglob("run.json")).unlink(),
    "state damaged": lambda w: w.complete_file.write_text("{"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_output_counts(workspace, change):
    CHANGES[change](workspace)
    assert up_to_date.still_stands(workspace, INPUTS) is None


def test_metadata_changed_inside_kept_does_not_count(workspace):
    with up_to_date.kept(workspace):
        workspace.metadata_db.write_bytes(b"other metadata")
    assert up_to_date.still_stands(workspace, INPUTS) is not None


def test_kept_does_not_validate_a_changed_run(workspace):
    workspace.metadata_db.write_bytes(b"another run's")
    with up_to_date.kept(workspace):
        pass
    assert up_to_date.still_stands(workspace, INPUTS) is None


@pytest.mark.parametrize(
    ("status", "push"), [("blocked", "blocked"), ("failed", "pushed")]
)
def test_only_complete_runs_are_stored(workspace, status, push):
    workspace.complete_file.unlink()
    record = RunRecord.load(workspace.run_dir("20260101T000000Z-aaaa"))
    record.status, record.pushes[0].state = status, push
    up_to_date.remember(workspace, record, INPUTS)
    assert not workspace.complete_file.exists()
