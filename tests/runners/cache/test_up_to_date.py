"""Whether a pipeline is up to date with its last complete run."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs
from runners.cache.up_to_date import is_probably_up_to_date
from serving.local_store import LocalModelStore
from sluice.record.run_record import ArtifactRecord, PushRecord, RunRecord
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

COMMAND = "sluice run trips"
RUN = "20260101T000000Z-aaaa"
INPUTS = RunInputs(
    config={"train": {"epochs": 3}},
    places={"root": "/p"},
    schema="s",
    code={"pipeline.training.run_fn": "c"},
    data={"train: a": "d"},
    packages={"tfx": "1"},
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
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


def test_nothing_has_changed(workspace: Workspace) -> None:
    last = up_to_date.still_stands(workspace, INPUTS)
    assert last is not None and last.run_id == "20260101T000000Z-aaaa"


@pytest.mark.parametrize(
    "inputs",
    [
        replace(INPUTS, config={"train": {"epochs": 4}}),
        replace(INPUTS, places={"root": "/q"}),
        replace(INPUTS, schema="t"),
        replace(INPUTS, code={"pipeline.training.run_fn": "d"}),
        replace(INPUTS, data={"train: a": "e"}),
        replace(INPUTS, data={"train: a": "d", "train: b": "d"}),
        replace(INPUTS, packages={"tfx": "2"}),
    ],
)
def test_other_inputs_are_a_new_run(workspace: Workspace, inputs: RunInputs) -> None:
    assert up_to_date.still_stands(workspace, inputs) is None


def _lose_an_output(workspace: Workspace) -> None:
    next(workspace.artifacts.rglob("saved_model.pb")).unlink()


def _change_an_output(workspace: Workspace) -> None:
    next(workspace.artifacts.rglob("saved_model.pb")).write_bytes(b"MODEL")


def _lose_the_served_version(workspace: Workspace) -> None:
    shutil.rmtree(workspace.serving / "1")


def _damage_the_served_version(workspace: Workspace) -> None:
    (workspace.serving / "1" / "saved_model.pb").write_bytes(b"other")


def _lose_the_record_of_the_push(workspace: Workspace) -> None:
    (workspace.serving / ".versions" / "1.json").unlink()


def _serve_another(workspace: Workspace) -> None:
    shutil.copytree(workspace.serving / "1", workspace.serving / "2")


def _run_something_else(workspace: Workspace) -> None:
    workspace.metadata_db.write_bytes(b"metadata!")


def _lose_the_metadata(workspace: Workspace) -> None:
    workspace.metadata_db.unlink()


def _lose_the_record(workspace: Workspace) -> None:
    next(workspace.runs.rglob("run.json")).unlink()


def _damage_the_memory(workspace: Workspace) -> None:
    (workspace.root / "state" / "complete.json").write_text("{")


def _accept_other_data(workspace: Workspace) -> None:
    entry = workspace.root / "state" / "accepted" / "data-0123456789ab"
    entry.mkdir(parents=True)
    (entry / "record.json").write_text("{}")


def test_metadata_changed_inside_kept_does_not_count(
    workspace: Workspace,
) -> None:
    with up_to_date.kept(workspace):
        workspace.metadata_db.write_bytes(b"other metadata")
    assert up_to_date.still_stands(workspace, INPUTS) is not None


def test_kept_does_not_validate_a_changed_run(workspace: Workspace) -> None:
    workspace.metadata_db.write_bytes(b"another run's")
    with up_to_date.kept(workspace):
        pass
    assert up_to_date.still_stands(workspace, INPUTS) is None


@pytest.mark.parametrize(
    "change",
    [
        _accept_other_data,
        _lose_an_output,
        _change_an_output,
        _lose_the_served_version,
        _damage_the_served_version,
        _lose_the_record_of_the_push,
        _serve_another,
        _run_something_else,
        _lose_the_metadata,
        _lose_the_record,
        _damage_the_memory,
    ],
)
def test_a_changed_output_counts(
    workspace: Workspace, change: Callable[[Workspace], None]
) -> None:
    change(workspace)
    assert up_to_date.still_stands(workspace, INPUTS) is None


def test_an_output_rewritten_with_the_same_size_counts(
    workspace: Workspace,
) -> None:
    path = next(workspace.artifacts.rglob("saved_model.pb"))
    os.utime(path, ns=(0, 0))
    assert up_to_date.still_stands(workspace, INPUTS) is None


@pytest.mark.parametrize(
    ("status", "push"), [("blocked", "blocked"), ("failed", "pushed")]
)
def test_only_complete_runs_are_stored(
    workspace: Workspace, status: str, push: str
) -> None:
    (workspace.root / "state" / "complete.json").unlink()
    record = RunRecord.load(workspace.run_dir("20260101T000000Z-aaaa"))
    record.status, record.pushes[0].state = status, push  # type: ignore[assignment]
    up_to_date.remember(workspace, record, INPUTS)
    assert not up_to_date.exists(workspace)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose last run was complete, seconds after its files were written."""
    hour_ago = time.time() - 3600
    for name in ("configs/trips.yaml", "data/train-0", "model.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    for path in (*tmp_path.rglob("*"), tmp_path):
        os.utime(path, (hour_ago, hour_ago))
    workspace = _workspace(tmp_path)
    workspace.prepare()
    for memory, name in (
        (workspace.digests_file, "data/train-0"),
        (workspace.sources_file, "model.py"),
    ):
        digests = FileDigests(memory)
        digests.of(tmp_path / name)
        digests.save()
    run_dir = workspace.run_dir(RUN)
    run_dir.mkdir()
    (run_dir / "run.json").write_text(json.dumps({"command": COMMAND}))
    workspace.complete_file.write_text(json.dumps({"run_id": RUN}))
    minute_ago = time.time() - 60
    os.utime(workspace.complete_file, (minute_ago, minute_ago))
    return tmp_path


def _workspace(project: Path) -> Workspace:
    return Workspace(project / "workspace" / "trips")


def _guess(project: Path, command: str = COMMAND) -> bool:
    config = project / "configs" / "trips.yaml"
    return is_probably_up_to_date(_workspace(project), config, command)


def test_the_same_command_again(project: Path) -> None:
    assert _guess(project)
    assert not _guess(project, "sluice run trips --no-cache")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "configs" / "trips.yaml").write_text("other"),
        lambda root: (root / "data" / "train-0").write_text("other"),
        lambda root: (root / "data" / "train-1").write_text("new"),
        lambda root: (root / "data" / "train-0").unlink(),
        lambda root: (root / "model.py").write_text("other"),
        lambda root: _workspace(root).complete_file.unlink(),
        lambda root: _workspace(root).complete_file.write_text("{"),
        lambda root: _workspace(root).sources_file.unlink(),
        lambda root: _workspace(root).digests_file.write_text('{"a": 3}'),
        lambda root: (_workspace(root).run_dir(RUN) / "run.json").unlink(),
    ],
)
def test_something_has_changed(project: Path, change: Callable[[Path], object]) -> None:
    change(project)
    assert not _guess(project)
