"""Model store: version numbers, repeated pushes, records."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from serving.model_store import ModelStore
from sluice.errors import ServingError
from sluice.storage import digest

pytestmark = pytest.mark.unit


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "serving")


def test_store_without_a_push_is_empty(store):
    assert store.versions() == []
    assert store.newest() is None
    assert not store.root.exists()


def test_push_is_the_source_under_the_first_number(store, make_saved_model):
    source = make_saved_model()

    publication = store.publish(source, facts={"run_id": "r1"})

    assert (publication.version, publication.state) == (1, "pushed")
    assert publication.path == store.root / "1"
    assert publication.digest == digest.of_tree(source)
    assert digest.of_tree(publication.path) == publication.digest


def test_record_tells_digest_time_and_facts(store, make_saved_model):
    facts = {"run_id": "20260101T000000Z-ab12", "uri": "Modell/ä", "nested": {"a": [1]}}
    store.publish(make_saved_model(), facts=facts)

    newest = store.newest()

    assert newest.facts == facts
    assert newest.digest == digest.of_tree(newest.path)
    age = datetime.now(timezone.utc) - datetime.fromisoformat(newest.published_at)
    assert timedelta(0) <= age < timedelta(minutes=1)
    assert newest.is_intact()


def test_root_holds_only_numbers_and_dot_names(store, make_saved_model):
    store.publish(make_saved_model("a", b"a"), facts={})
    store.publish(make_saved_model("b", b"b"), facts={})

    names = set(os.listdir(store.root))

    assert {name for name in names if not name.startswith(".")} == {"1", "2"}
    assert not [name for name in names if name.startswith(".staging")]


def test_same_model_is_not_pushed_again(store, make_saved_model):
    first = store.publish(make_saved_model("a"), facts={"run_id": "r1"})

    again = store.publish(make_saved_model("copy of a"), facts={"run_id": "r2"})

    assert (again.version, again.state) == (first.version, "already_served")
    assert again.path == first.path
    assert [version.facts for version in store.versions()] == [{"run_id": "r1"}]


def test_model_that_is_only_an_older_version_is_pushed(store, make_saved_model):
    older = make_saved_model("a", b"a")
    store.publish(older, facts={})
    store.publish(make_saved_model("b", b"b"), facts={})

    back = store.publish(older, facts={})

    assert (back.version, back.state) == (3, "pushed")


def test_a_version_of_the_store_can_be_published_again(store, make_saved_model):
    store.publish(make_saved_model("a", b"a"), facts={})
    store.publish(make_saved_model("b", b"b"), facts={})

    back = store.publish(store.versions()[0].path, facts={"rollback": True})

    assert back.version == 3
    assert store.versions()[0].digest == store.newest().digest


@pytest.mark.parametrize("damage", ["changed", "removed", "added"])
def test_damaged_newest_version_is_pushed_anew(store, make_saved_model, damage):
    source = make_saved_model()
    path = store.publish(source, facts={}).path
    if damage == "changed":
        (path / "saved_model.pb").write_bytes(b"grapH")
    elif damage == "removed":
        (path / "variables" / "variables.index").unlink()
    else:
        (path / "variables" / "extra").write_bytes(b"")
    assert not store.newest().is_intact()

    again = store.publish(source, facts={})

    assert (again.version, again.state) == (2, "pushed")
    assert store.newest().is_intact()


def test_number_of_a_deleted_version_is_not_used_again(store, make_saved_model):
    store.publish(make_saved_model("a", b"a"), facts={})
    store.publish(make_saved_model("b", b"b"), facts={})
    shutil.rmtree(store.root / "1")
    shutil.rmtree(store.root / "2")

    assert store.publish(make_saved_model("c", b"c"), facts={}).version == 3
    assert [version.version for version in store.versions()] == [3]


@pytest.mark.parametrize("content", [None, "", "not a number"])
def test_lost_counter_goes_on_after_the_newest(store, make_saved_model, content):
    store.publish(make_saved_model("a", b"a"), facts={})
    store.publish(make_saved_model("b", b"b"), facts={})
    counter = store.root / ".versions" / "next"
    counter.unlink() if content is None else counter.write_text(content)

    assert store.publish(make_saved_model("c", b"c"), facts={}).version == 3


def test_versions_are_ordered_by_number_not_by_name(store, make_saved_model):
    for i in range(11):
        store.publish(make_saved_model(f"m{i}", bytes([i])), facts={"i": i})

    assert [version.version for version in store.versions()] == list(range(1, 12))
    assert store.newest().facts == {"i": 10}


def test_version_made_by_someone_else_counts(store, make_saved_model):
    source = make_saved_model()
    shutil.copytree(source, store.root / "1700000000")

    stranger = store.newest()
    publication = store.publish(source, facts={})

    assert (stranger.version, stranger.digest) == (1700000000, None)
    assert (stranger.published_at, stranger.facts) == (None, {})
    assert not stranger.is_intact()
    assert (publication.version, publication.state) == (1700000001, "pushed")


def test_names_that_a_server_ignores_are_no_versions(store, make_saved_model):
    store.publish(make_saved_model(), facts={})
    for name in ("latest", "1.5", "-3", ".7", "²", "9223372036854775808"):
        (store.root / name).mkdir()

    assert [version.version for version in store.versions()] == [1]


def test_stray_file_with_a_number_is_no_version_but_keeps_it(store, make_saved_model):
    store.publish(make_saved_model("a", b"a"), facts={})
    (store.root / "5").write_text("")

    assert store.newest().version == 1
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 6


def test_unreadable_record_is_like_none(store, make_saved_model):
    source = make_saved_model()
    store.publish(source, facts={})
    (store.root / ".versions" / "1.json").write_text('{"digest":')

    assert store.newest().digest is None
    assert store.publish(source, facts={}).version == 2


def test_another_user_can_read_whatever_the_umask(store, make_saved_model):
    source = make_saved_model()
    (source / "variables").chmod(0o700)
    (source / "saved_model.pb").chmod(0o600)
    before = os.umask(0o077)
    try:
        path = store.publish(source, facts={}).path
    finally:
        os.umask(before)

    modes = {entry: entry.stat().st_mode & 0o777 for entry in path.rglob("*")}
    assert {mode for entry, mode in modes.items() if entry.is_file()} == {0o644}
    assert {mode for entry, mode in modes.items() if entry.is_dir()} == {0o755}
    assert path.stat().st_mode & 0o777 == store.root.stat().st_mode & 0o777 == 0o755


def test_another_user_can_reach_a_new_serving_directory(tmp_path, make_saved_model):
    root = tmp_path / "models" / "europe" / "trips"
    before = os.umask(0o077)
    try:
        ModelStore(root).publish(make_saved_model(), facts={})
    finally:
        os.umask(before)

    made = [root, *root.parents[:2]]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o755}


def test_source_that_is_no_model_leaves_nothing(store, tmp_path):
    (tmp_path / "empty").mkdir()

    with pytest.raises(ServingError, match=r"(?s)not a SavedModel.*empty"):
        store.publish(tmp_path / "empty", facts={})

    assert not store.root.exists()


def test_facts_that_are_no_json_leave_nothing(store, make_saved_model):
    with pytest.raises(TypeError, match="not JSON serializable"):
        store.publish(make_saved_model(), facts={"path": Path("x")})

    assert not store.root.exists()


def test_interrupted_copy_leaves_no_staging(store, make_saved_model, monkeypatch):
    store.publish(make_saved_model("a", b"a"), facts={})

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.publish(make_saved_model("b", b"b"), facts={})

    assert not list(store.root.glob(".staging*"))
    assert [version.version for version in store.versions()] == [1]


def test_file_in_place_of_the_root_is_named(tmp_path, make_saved_model):
    store = ModelStore(tmp_path / "serving")
    store.root.write_text("")

    with pytest.raises(ServingError, match=r"could not be pushed.*\n.*serving") as push:
        store.publish(make_saved_model(), facts={})
    with pytest.raises(ServingError, match="cannot be read: Not a directory"):
        store.versions()

    assert push.value.where == str(store.root)
    assert "can write" in str(push.value.hint)


def test_a_model_changed_since_its_evaluation_is_not_pushed(store, make_saved_model):
    source = make_saved_model()
    judged = digest.of_tree(source)
    store.publish(source, facts={}, expected_digest=judged)
    (source / "saved_model.pb").write_bytes(b"GRAPH")

    with pytest.raises(
        ServingError, match="has changed since it was trained"
    ) as raised:
        store.publish(source, facts={}, expected_digest=judged)

    assert (raised.value.exit_code, judged in str(raised.value)) == (5, True)
    assert [version.version for version in store.versions()] == [1]
