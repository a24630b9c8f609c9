"""Garbage collection: runs and artifacts that are kept, and those deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from runners.retention.collect_garbage import collect_garbage
from runners.retention.find_garbage import Garbage
from sluice.record.run_record import RunRecord
from sluice.storage import digest

pytestmark = pytest.mark.unit


def _names(garbage: Garbage, kind: str) -> set[str]:
    return {item.name for item in garbage.items[kind]}


def test_the_newest_runs_are_kept_with_their_inputs(past: Any) -> None:
    first, second, third = (past.run(blessed=False) for _ in range(3))
    examples = past.made_by(first, "TFRecordGen.examples")
    models = [past.made_by(run_id, "Trainer.model") for run_id in (first, second)]
    garbage = past.collect()
    assert garbage.kept_runs == (third,)
    assert examples.is_dir(), "the cache of the third run rests on the first run's data"
    assert past.made_by(third, "Trainer.model").is_dir()
    assert not any(model.exists() for model in models)
    assert {str(model) for model in models} <= _names(garbage, "artifacts")
    assert garbage.freed_bytes > 0


def test_keep_is_the_number_of_newest_runs(past: Any) -> None:
    runs = [past.run(blessed=False, status="blocked") for _ in range(4)]
    assert past.collect(keep=2).kept_runs == tuple(runs[2:])
    assert not past.made_by(runs[1], "Trainer.model").exists()
    assert past.made_by(runs[2], "Trainer.model").is_dir()


def test_a_run_that_a_service_still_runs_is_kept(past: Any) -> None:
    """Found: its job.json was deleted, so that it could not be cancelled any more."""
    is_open = past.run(train=False, status="running")
    job = past.workspace.run_dir(is_open) / "job.json"
    job.write_text("{}")
    newest = [past.run(blessed=False, status="blocked") for _ in range(2)]
    assert past.collect(keep=1).kept_runs == (is_open, newest[-1])
    assert job.exists()


# What it is called, and what it was called before.
@pytest.mark.parametrize("status", ["up_to_date", "nothing_to_do"])
def test_runs_that_were_up_to_date_do_not_count(past: Any, status: str) -> None:
    older = past.run(blessed=False)
    past.run(train=False, status=status)
    complete = past.run(blessed=False)
    between = past.run(train=False, status=status)
    failed = past.run(blessed=False, status="failed")
    idle = [past.run(train=False, status=status) for _ in range(6)]
    garbage = past.collect(keep=2)
    assert garbage.kept_runs == (complete, between, failed, *idle)
    assert not past.made_by(older, "Trainer.model").exists()
    assert past.made_by(failed, "Trainer.model").is_dir()
    assert RunRecord.load(past.workspace.run_dir(older)).run_id == older


def test_a_served_version_keeps_the_runs_that_trained_and_pushed_it(
    past: Any,
) -> None:
    trained = past.run()
    pushed = past.run(train=False, push=True)
    between = past.run(train=False)
    newest = past.run(blessed=False, data=True)
    garbage = past.collect()
    assert garbage.kept_runs == (trained, pushed, newest)
    assert past.made_by(trained, "Trainer.model_run").is_dir()
    assert past.made_by(trained, "TFRecordGen.examples").is_dir()
    assert _names(garbage, "runs") == {between}


def test_a_deleted_version_keeps_no_run(past: Any) -> None:
    pushed = past.run(push=True)
    past.run()
    newest = past.run()
    (version,) = past.workspace.serving.glob("[0-9]*")
    version.rename(past.root / "elsewhere")
    assert past.collect().kept_runs == (newest,)
    assert not past.made_by(pushed, "Trainer.model").exists()


def test_a_version_in_a_directory_of_an_earlier_config_keeps_its_run(past: Any) -> None:
    pushed = past.run(push=True)
    newest = past.run()
    garbage = collect_garbage(past.workspace, [past.root / "other"], keep=1)
    assert garbage.kept_runs == (pushed, newest)


def test_the_next_baseline_is_kept(past: Any) -> None:
    blessed = past.run(status="blocked")
    for _ in range(2):
        past.run(blessed=False, status="blocked")
    garbage = past.collect()
    assert blessed not in garbage.kept_runs
    assert past.made_by(blessed, "Trainer.model").is_dir()
    assert past.made_by(blessed, "ModelVerdict.blessing").is_dir()
    assert not past.made_by(blessed, "Trainer.model_run").exists()


def test_the_last_complete_run_is_kept(past: Any) -> None:
    past.run(blessed=False)
    complete = past.run(blessed=False)
    newest = [past.run(blessed=False, status="failed") for _ in range(2)]
    assert past.collect().kept_runs == (complete, newest[-1])
    assert past.made_by(complete, "Trainer.model_run").is_dir()


def test_artifacts_named_only_in_a_record_are_kept(past: Any) -> None:
    first = past.run(blessed=False, status="blocked")
    model = past.made_by(first, "Trainer.model")
    past.record("20270101T000000Z-bbbb", "interrupted")
    record = RunRecord.load(past.workspace.run_dir("20270101T000000Z-bbbb"))
    record.nodes[0].outputs = {"model": [str(model)]}
    record.save(past.workspace.run_dir("20270101T000000Z-bbbb"))
    assert past.collect().kept_runs == ("20270101T000000Z-bbbb",)
    assert model.is_dir()
    assert not past.made_by(first, "Trainer.model_run").exists()


def test_records_and_metadata_are_kept(past: Any) -> None:
    dropped = past.run(blessed=False)
    kept = past.run(blessed=False, data=True)
    before = past.graph()
    garbage = past.collect()
    after = past.graph()
    assert after.artifacts.keys() == before.artifacts.keys()
    assert after.executions == before.executions
    for artifact in after.artifacts.values():
        gone = artifact.id in garbage.mark
        assert artifact.state == ("deleted" if gone else "live")
        assert Path(artifact.uri).exists() is not gone
    assert RunRecord.load(past.workspace.run_dir(dropped)).run_id == dropped
    assert [path.name for path in past.workspace.run_dir(dropped).iterdir()] == [
        "run.json"
    ]
    assert (past.workspace.run_dir(kept) / "logs" / "Trainer.log").is_file()
    assert past.workspace.run_ids() == [dropped, kept]


def test_a_second_collection_finds_nothing(past: Any) -> None:
    for _ in range(3):
        past.run(data=True, blessed=False)
    assert past.collect().freed_bytes > 0
    again = past.collect()
    assert again.items == dict.fromkeys(again.items, ())
    assert (again.mark, again.close) == ((), ())
    assert not (past.workspace.artifacts / "Trainer" / ".system").exists()


def test_empty_folders_are_deleted_and_empty_artifacts_are_kept(past: Any) -> None:
    old = past.execution("20250101T000000Z-aaaa", "Retired")
    uri = past.uri("Retired", "thing", old)
    uri.mkdir(parents=True)
    past.output(old, "thing", "Examples", uri)
    kept = past.run()
    pushed = past.made_by(kept, "Pusher.pushed_model")
    for path in pushed.iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    empty = past.workspace.artifacts / "Importer" / "of_another_layout"
    empty.mkdir(parents=True)
    past.output(past.execution(kept, "Importer"), "result", "Examples", empty)
    past.collect()
    assert not (past.workspace.artifacts / "Retired").exists()
    assert pushed.is_dir(), "an empty folder is what TFX's cache looks for"
    assert empty.is_dir()


@pytest.mark.parametrize("where", ["outside", "dots", "link", "root", "gs"])
def test_nothing_outside_of_the_artifacts_is_ever_deleted(
    past: Any, where: str
) -> None:
    outside = past.root / "precious"
    outside.mkdir()
    (outside / "file").write_text("mine")
    past.run()
    artifacts = past.workspace.artifacts
    (artifacts / "link").symlink_to(past.root)
    uri = {
        "outside": str(outside),
        "dots": f"{artifacts}/Trainer/../../../../precious",
        "link": f"{artifacts}/link/precious",
        "root": str(artifacts),
        "gs": "gs://bucket/precious",
    }[where]
    old = past.execution("20250101T000000Z-aaaa", "Importer")
    stray = past.output(old, "result", "Examples", uri)
    garbage = past.collect()
    assert (outside / "file").read_text() == "mine"
    assert stray not in garbage.mark
    assert past.graph().artifacts[stray].state == "live"
    assert artifacts.is_dir()


def test_links_inside_an_artifact_are_removed_and_not_followed(past: Any) -> None:
    outside = past.root / "precious"
    outside.mkdir()
    (outside / "file").write_text("mine")
    dropped = past.run(blessed=False)
    model = past.made_by(dropped, "Trainer.model")
    (model / "link").symlink_to(outside)
    run_dir = past.workspace.run_dir(dropped)
    (run_dir / "record").symlink_to(outside)
    past.run(blessed=False)
    past.collect()
    assert not model.exists() and not (run_dir / "record").is_symlink()
    assert (outside / "file").read_text() == "mine"


def test_paths_above_and_below_a_kept_artifact_are_kept(past: Any) -> None:
    kept = past.run()
    model = past.made_by(kept, "Trainer.model")
    old = past.execution("20250101T000000Z-aaaa", "Importer")
    saved_model = model / "Format-Serving"
    for uri in (model, model.parent, saved_model):
        past.output(old, "result", "Model", uri)
    external = past.uri("Trainer", "model", 999)
    external.mkdir()
    past.output(old, "result", "Model", external, {"is_external": 1})
    garbage = past.collect()
    assert garbage.artifacts == ()
    assert (saved_model / "saved_model.pb").is_file()
    assert (saved_model / "variables").is_dir()
    assert external.is_dir()


def test_leftovers_of_nodes_are_deleted_and_killed_executions_closed(past: Any) -> None:
    run_id = past.run()
    system = past.workspace.artifacts / "Trainer" / ".system"
    killed = past.execution(run_id, "Trainer", state=mlmd.Execution.RUNNING)
    new = past.execution(run_id, "Trainer", state=mlmd.Execution.NEW)
    paths = [
        system / "executor_execution" / str(killed) / ".temp",
        system / "stateful_working_dir" / "an-old-run",
        system / "driver_execution" / "1795281744381914",
        past.uri("Trainer", "model", killed),
    ]
    stay = [
        system / "of_a_later_tfx" / "1",
        past.uri("Trainer", "model", 12345),
        past.workspace.artifacts / "_wheels" / "1",
    ]
    for path in (*paths, *stay):
        path.mkdir(parents=True)
        (path / "part").write_text("part")
    garbage = past.collect()
    assert garbage.close == (killed, new)
    graph = past.graph()
    assert {graph.executions[item].state for item in (killed, new)} == {"failed"}
    assert [path for path in paths if path.exists()] == []
    assert all((path / "part").is_file() for path in stay)
    assert sum(item.size_bytes for item in garbage.leftovers) == 4 * len(paths)


def test_the_working_directory_of_a_resumable_run_is_kept(past: Any) -> None:
    interrupted = past.run(status="interrupted")
    store = past.workspace.artifacts / "Trainer" / ".system" / "stateful_working_dir"
    (store / interrupted).mkdir(parents=True)
    (store / "20250101T000000Z-aaaa").mkdir()
    past.collect()
    assert [path.name for path in store.iterdir()] == [interrupted]


def test_copies_of_inputs_are_kept_while_a_kept_run_names_them(past: Any) -> None:
    past.run()
    unused = past.workspace.inputs / "schema" / ("0b" * 32) / "schema.pbtxt"
    other = past.workspace.inputs / "notes" / "mine"
    for path in (unused, other):
        path.parent.mkdir(parents=True)
        path.write_text("text")
    garbage = past.collect()
    assert _names(garbage, "inputs") == {str(unused.parent)}
    assert not unused.parent.exists()
    assert past.schema.is_file() and other.is_file()


def test_folders_that_are_not_runs_are_kept(past: Any) -> None:
    past.run()
    begun = past.workspace.run_dir("20250101T000000Z-aaaa")
    notes = past.workspace.run_dir("notes")
    for folder in (begun, notes):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
    garbage = past.collect()
    assert _names(garbage, "runs") == {begun.name}
    assert not begun.exists()
    assert (notes / "config.json").is_file()


def test_an_unreadable_record_counts_as_a_run(past: Any) -> None:
    past.run()
    newest = past.run()
    (past.workspace.run_dir(newest) / "run.json").write_text("{")
    assert newest in past.collect().kept_runs


def test_a_dry_run_finds_the_same_and_changes_nothing(past: Any) -> None:
    past.run(blessed=False)
    run_id = past.run(blessed=False, data=True)
    past.execution(run_id, "Trainer", state=mlmd.Execution.RUNNING)
    with past.workspace.exclusive("sluice run digits"):
        pass
    before = digest.of_tree(past.workspace.root)
    found = past.collect(dry_run=True)
    assert digest.of_tree(past.workspace.root) == before
    assert found == past.collect()


def test_without_a_workspace_nothing_is_made(past: Any) -> None:
    workspace = type(past.workspace)(past.root / "workspace" / "other")
    garbage = collect_garbage(workspace, [], keep=1)
    assert garbage == Garbage(kept_runs=())
    assert not workspace.root.exists()


def test_the_serving_directory_of_a_failed_push_is_ignored(past: Any) -> None:
    """Such as one to a directory that cannot be."""
    run_id = past.run(push=True)
    where = {"filesystem": {"base_directory": "/dev/null/x"}}
    properties = {"push_destination": json.dumps(where), "serving_dir": "/dev/null/x"}
    past.execution(run_id, "Pusher", state=mlmd.Execution.FAILED, properties=properties)

    assert past.collect().kept_runs == (run_id,)
