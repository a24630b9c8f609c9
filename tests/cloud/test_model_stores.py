"""Contract of a model store, for a directory and for a bucket."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from serving.model_store import ModelStore, SavedModel, store_at
from serving.store_owner import Owner, read_owner
from sluice.errors import ServingError, UsageError
from sluice.storage import digest
from sluice.storage.storage import storage_for

pytestmark = pytest.mark.cloud


@pytest.fixture(params=["directory", "bucket"])
def store(request, tmp_path: Path, bucket) -> ModelStore:
    is_local = request.param == "directory"
    return store_at(tmp_path / "serving" if is_local else bucket.uri("serving"))


def test_record_tells_digest_time_and_facts(store, make_saved_model):
    facts = {"run_id": "20260101T000000Z-ab12", "uri": "Modell/ä", "nested": {"a": [1]}}
    store.publish(make_saved_model(), facts=facts)

    newest = store.newest()

    assert newest.facts == facts
    assert newest.digest == digest.of_tree(newest.uri)
    age = datetime.now(timezone.utc) - datetime.fromisoformat(newest.published_at)
    assert timedelta(0) <= age < timedelta(minutes=1)
    assert newest.is_intact()


def test_a_retired_version_stays_as_it_is(store, make_saved_model):
    store.publish(make_saved_model("a"), facts={"run_id": "r1"})
    before = store.newest()
    store.retire(1, "bad labels", Owner("digits"))
    assert store.newest() == replace(before, retired="bad labels")
    assert store.newest().is_intact()


def test_same_model_is_not_pushed_again(store, make_saved_model):
    first = store.publish(make_saved_model("a"), facts={"run_id": "r1"})

    again = store.publish(make_saved_model("copy of a"), facts={"run_id": "r2"})

    assert (again.version, again.state) == (first.version, "already_served")
    assert again.uri == first.uri
    assert [version.facts for version in store.versions()] == [{"run_id": "r1"}]


@pytest.mark.parametrize("damage", ["changed", "removed", "added"])
def test_damaged_newest_version_is_pushed_anew(store, make_saved_model, damage):
    source = make_saved_model()
    uri = store.publish(source, facts={}).uri
    files = storage_for(uri)
    if damage == "changed":
        files.write_atomically(f"{uri}/saved_model.pb", b"grapH")
    elif damage == "removed":
        files.delete(f"{uri}/variables/variables.index")
    else:
        files.write_atomically(f"{uri}/variables/extra", b"")
    assert not store.newest().is_intact()

    again = store.publish(source, facts={})

    assert (again.version, again.state) == (2, "pushed")
    assert store.newest().is_intact()


def test_versions_are_ordered_by_number_not_by_name(store, make_saved_model):
    for i in range(11):
        store.publish(make_saved_model(f"m{i}", bytes([i])), facts={"i": i})

    assert [version.version for version in store.versions()] == list(range(1, 12))
    assert store.newest().facts == {"i": 10}


def test_names_that_a_server_ignores_are_no_versions(store, make_saved_model):
    store.publish(make_saved_model(), facts={})
    for name in ("latest", "1.5", "-3", ".7", "²"):
        file = f"{store.uri}/{name}/saved_model.pb"
        storage_for(file).make_folder(file.rpartition("/")[0])
        storage_for(file).write_atomically(file, b"x")

    assert [version.version for version in store.versions()] == [1]
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 2


@pytest.mark.parametrize(
    "other", [Owner("taxi", "aa11"), Owner("digits", "bb22"), None], ids=str
)
def test_another_pipeline_is_refused(store, make_saved_model, other):
    owner = Owner("digits", "aa11")
    store.prepare(owner)
    store.publish(make_saved_model("a", b"a"), facts={"n": 1}, owner=owner)
    theirs = make_saved_model("b", b"b")

    with pytest.raises(UsageError, match="belongs to another pipeline") as refused:
        store.publish(theirs, facts={}, owner=other)
    with pytest.raises(UsageError, match="belongs to another pipeline"):
        store.prepare(other)
    with pytest.raises(UsageError, match="belongs to"):  # Not even what is served.
        store.publish(store.newest().uri, facts={}, owner=other)

    assert refused.value.where == store.uri
    assert [version.facts for version in store.versions()] == [{"n": 1}]
    way_out = str(refused.value.hint).rpartition("delete ")[2]
    storage_for(way_out).delete(way_out)
    store.prepare(other)
    assert store.publish(theirs, facts={}, owner=other).version == 2


@pytest.mark.parametrize("name", ["1764346000000000000", "0007"])
def test_a_push_follows_any_folder_that_a_server_may_load(
    store, make_saved_model, name
):
    """Found: "pushed as version 1", and TensorFlow Serving loaded the folder."""
    storage_for(store.uri).make_folder(f"{store.uri}/{name}")
    storage_for(store.uri).write_atomically(f"{store.uri}/{name}/x", b"")

    assert store.publish(make_saved_model(), facts={}).version == int(name) + 1
    versions = {item.version: item.uri for item in store.versions()}
    assert versions.get(int(name)) in (None, f"{store.uri}/{name}")


def test_a_store_without_an_owner_is_claimed_by_the_next_push(store, make_saved_model):
    store.publish(make_saved_model(), facts={})
    owner, file = Owner("digits", "aa11"), f"{store.uri}/.versions/owner.json"

    store.prepare(owner)
    assert read_owner(file) is None, "it has pushed nothing yet"
    store.publish(make_saved_model("again"), facts={"run": "r1"}, owner=owner)

    assert read_owner(file) == owner
    assert json.loads(storage_for(file).read(file))["claimed_by"] == {"run": "r1"}


def test_a_model_that_changes_while_it_is_copied_is_not_pushed(
    store, make_saved_model, monkeypatch
):
    source, read = make_saved_model(), SavedModel.read

    def changing(root):
        found = read(root)
        (source / "saved_model.pb").write_bytes(b"GRAPH")
        return found

    monkeypatch.setattr(SavedModel, "read", changing)
    with pytest.raises(ServingError, match="changed while it was being copied"):
        store.publish(source, facts={})
    assert store.versions() == []
    assert not storage_for(store.uri).exists(f"{store.uri}/1/saved_model.pb")


def test_a_deleted_version_is_gone_and_its_number_stays_used(store, make_saved_model):
    owner = Owner("digits", "w1")
    for content in (b"a", b"b"):
        store.publish(
            make_saved_model(content.decode(), content), facts={}, owner=owner
        )
    with pytest.raises(UsageError, match="belongs to another pipeline"):
        store.delete(1, Owner("taxi", "w2"))
    store.delete(1, owner)
    assert [item.version for item in store.versions()] == [2]
    store.delete(2, owner)
    assert store.versions() == []
    source = make_saved_model("c", b"c")
    assert store.publish(source, facts={}, owner=owner).version == 3
