"""Garbage collection: runs and artifacts that are kept, and those deleted."""

from __future__ import annotations

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd

from runners.operations.collect_garbage import collect_garbage
from sluice.record.parts import ArtifactRecord
from sluice.record.run_record import RunRecord
from sluice.storage import digest

pytestmark = pytest.mark.unit

# A run that trains a model which is not blessed, and others in terms of it.
PLAIN = {"blessed": False}
BLOCKED = {"blessed": False, "status": "blocked"}
FAILED = {"blessed": False, "status": "failed"}
IDLE = {"train": False, "status": "up_to_date"}
# Is run by a service. Found: its job.json was deleted, and it could not be cancelled.
DRY = {"train": False, "dry_run": True}
TRIAL = {"blessed": False, "trial": True}
OPEN = {"train": False, "status": "running"}
TRAINED = {"push": False}
PUSHED_LATER = {"train": False, "push": True}


def _names(garbage, kind):
    return {item.name for item in garbage.items[kind]}


@pytest.mark.parametrize(
    ("runs", "keep", "kept", "models"),
    [
        # The third run's cache rests on the data of the first.
        ([PLAIN, PLAIN, PLAIN], 1, {2}, {2}),
        ([BLOCKED, BLOCKED, BLOCKED, BLOCKED], 2, {2, 3}, {2, 3}),
        ([OPEN, BLOCKED, BLOCKED], 1, {0, 2}, {2}),
        ([PLAIN, PLAIN, FAILED, IDLE, IDLE], 2, {1, 2, 3, 4}, {1, 2}),
        ([PLAIN, FAILED, DRY, DRY], 1, {0, 1, 2, 3}, {0, 1}),
        ([TRAINED, PUSHED_LATER, OPEN, PLAIN], 1, {0, 1, 2, 3}, {0, 3}),
        ([PLAIN, PLAIN, FAILED, FAILED], 1, {1, 3}, {1, 3}),
        ([PLAIN, TRIAL, FAILED], 1, {0, 2}, {0, 2}),
        # The next baseline is kept, but not its run.
        ([{"status": "blocked"}, BLOCKED, BLOCKED], 1, {2}, {0, 2}),
    ],
    ids="newest keep-2 open idle dry served complete trial baseline".split(),
)
def test_what_is_kept(past, runs, keep, kept, models):
    made = [past.run(**({"status": "succeeded"} | run)) for run in runs]
    trained = {
        number: past.made_by(made[number], "Trainer.model")
        for number, run in enumerate(runs)
        if run.get("train", True) or number == 0
    }
    garbage = past.collect(keep=keep)
    assert garbage.kept_runs == tuple(made[number] for number in sorted(kept))
    found = {number for number, model in trained.items() if model.is_dir()}
    assert found - {0} == models - {0} and (0 in found or 0 not in models)
    assert past.made_by(made[0], "TFRecordGen.examples").is_dir()
    for number, run_id in enumerate(made):
        files = {path.name for path in past.workspace.run_dir(run_id).iterdir()}
        assert ("logs" in files, "run.json" in files) == (number in kept, True)


def test_documents_are_deleted_with_their_artifact(past):
    """Found: after a rewrite they stayed for ever."""
    dropped, kept = past.run(blessed=False), past.run(blessed=False)
    uris = {item.uri: item.id for item in past.graph().artifacts.values()}
    models = [str(past.made_by(run_id, "Trainer.model")) for run_id in (dropped, kept)]
    names = [f"{uris[uri]}.model.json" for uri in models] + ["notes.json", "a.b.json"]
    for name in names:
        (past.workspace.documents / name).write_text("{}")
    past.collect()
    left = {path.name for path in past.workspace.documents.iterdir()}
    assert left == {*names[1:]}


def test_a_deleted_version_keeps_no_run(past):
    pushed = past.run(push=True)
    past.run()
    newest = past.run()
    (version,) = past.workspace.serving.glob("[0-9]*")
    version.rename(past.root / "elsewhere")
    assert past.collect().kept_runs == (newest,)
    assert not past.made_by(pushed, "Trainer.model").exists()


def test_a_version_in_a_directory_of_an_earlier_config_keeps_its_run(past):
    pushed = past.run(push=True)
    newest = past.run()
    garbage = collect_garbage(past.workspace, [past.root / "other"], keep=1)
    assert garbage.kept_runs == (pushed, newest)


def test_artifacts_named_only_in_a_record_are_kept(past):
    first = past.run(blessed=False, status="blocked")
    model = past.made_by(first, "Trainer.model")
    past.record("20270101T000000Z-bbbb", "interrupted")
    record = RunRecord.load(past.workspace.run_dir("20270101T000000Z-bbbb"))
    record.artifacts[str(model)] = ArtifactRecord(2, "Model")
    record.save(past.workspace.run_dir("20270101T000000Z-bbbb"))
    assert past.collect().kept_runs == ("20270101T000000Z-bbbb",)
    assert model.is_dir()
    assert not past.made_by(first, "Trainer.model_run").exists()


def test_metadata_is_kept_and_a_second_collection_finds_nothing(past):
    for _ in range(3):
        past.run(data=True, blessed=False)
    before = past.graph()
    garbage = past.collect()
    assert garbage.freed_bytes > 0
    after = past.graph()
    assert after.executions == before.executions
    states = {item.id: item.state for item in after.artifacts.values()}
    live = {item for item in states if item not in garbage.mark}
    assert states == {i: "live" if i in live else "deleted" for i in before.artifacts}
    again = past.collect()
    assert (again.freed_bytes, again.mark) == (0, ())
    assert again.items == dict.fromkeys(again.items, ())


@pytest.mark.parametrize("where", ["outside", "dots", "link", "root", "gs"])
def test_nothing_outside_of_the_artifacts_is_ever_deleted(past, where):
    outside = past.root / "precious"
    outside.mkdir()
    (outside / "file").write_text("mine")
    past.run()
    artifacts = past.workspace.artifacts
    (artifacts / "link").symlink_to(past.root)
    (artifacts / "Importer").mkdir()
    (artifacts / "Importer" / "result").symlink_to(past.root)
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
    assert artifacts.is_dir()


def test_links_inside_an_artifact_are_removed_and_not_followed(past):
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


def test_paths_above_and_below_a_kept_artifact_are_kept(past):
    kept = past.run()
    model = past.made_by(kept, "Trainer.model")
    old = past.execution("20250101T000000Z-aaaa", "Importer")
    saved_model = model / "Format-Serving"
    for uri in (model, model.parent, saved_model):
        past.output(old, "result", "Model", uri)
    external = past.uri("Trainer", "model", 999)
    external.mkdir()
    past.output(old, "result", "Model", external, {"is_external": 1})
    value = past.uri("Trainer", "model", 998) / "value"
    value.mkdir(parents=True)
    past.output(past.execution(kept, "Importer"), "result", "Model", value)
    (past.root / "shortcut").symlink_to(past.workspace.root)
    assert past.collect().items["artifacts"] == ()
    assert (saved_model / "saved_model.pb").is_file()
    assert external.is_dir() and value.is_dir()


def test_leftovers_of_nodes_are_deleted(past):
    run_id = past.run(status="interrupted")
    system = past.workspace.artifacts / "Trainer" / ".system"
    killed = past.execution(run_id, "Trainer", state=mlmd.Execution.RUNNING)
    paths = [
        system / "executor_execution" / str(killed) / ".temp",
        system / "stateful_working_dir" / "20250101T000000Z-aaaa",
        system / "driver_execution" / "1795281744381914",
        past.uri("Trainer", "model", killed),
    ]
    stay = [
        # This run may be resumed.
        system / "stateful_working_dir" / run_id,
        past.workspace.artifacts / "_wheels" / "1" / "2",
    ]
    for path in (*paths, *stay):
        path.mkdir(parents=True)
        (path / "part").write_text("part")
    found = past.collect(dry_run=True)
    assert past.collect() == found
    assert [path for path in paths if path.exists()] == []
    assert all((path / "part").is_file() for path in stay)


def test_copies_of_inputs_are_kept_while_a_kept_run_names_them(past):
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


def test_folders_that_are_not_runs_are_kept(past):
    past.run()
    newest = past.run()
    (past.workspace.run_dir(newest) / "run.json").write_text("{")
    begun = past.workspace.run_dir("20250101T000000Z-aaaa")
    notes = past.workspace.run_dir("notes")
    for folder in (begun, notes):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
    garbage = past.collect()
    assert begun.name in _names(garbage, "runs")
    assert not begun.exists()
    assert (notes / "config.json").is_file()
    assert newest in garbage.kept_runs, "its record cannot be read"


def test_a_dry_run_changes_nothing(past):
    past.run(blessed=False)
    past.run(blessed=False, data=True)
    with past.workspace.exclusive("sluice run digits"):
        pass
    before = digest.of_tree(past.workspace.root)
    assert past.collect(dry_run=True).freed_bytes > 0
    assert digest.of_tree(past.workspace.root) == before
