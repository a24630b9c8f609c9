"""Owner of a model store."""

import json
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from serving.store_owner import Owner, read_owner
from sluice.errors import UsageError

pytestmark = pytest.mark.unit

DIGITS = Owner("digits", "aa11")
REFUSED = "belongs to another pipeline"


@pytest.fixture
def store(tmp_path):
    return LocalModelStore(tmp_path / "serving")


def _owner(store):
    return read_owner(store.root / ".versions" / "owner.json")


@pytest.mark.parametrize(
    "other",
    [Owner("taxi", "aa11"), Owner("taxi"), Owner("digits", "bb22"), None],
    ids=str,
)
def test_another_pipeline_is_refused(store, make_saved_model, other):
    store.publish(make_saved_model("a", b"a"), facts={"n": 1}, owner=DIGITS)
    theirs = make_saved_model("b", b"b")

    with pytest.raises(UsageError, match=REFUSED) as refused:
        store.publish(theirs, facts={}, owner=other)
    with pytest.raises(UsageError, match=REFUSED):
        store.prepare(other)
    with pytest.raises(UsageError, match=REFUSED):  # Not even the model that is served.
        store.publish(store.newest().uri, facts={}, owner=other)

    assert [version.facts for version in store.versions()] == [{"n": 1}]
    assert _owner(store) == DIGITS
    assert "the pipeline 'digits' of the workspace aa11" in str(refused.value.expected)
    way_out = str(refused.value.hint).rpartition(": rm ")[2]
    Path(way_out).unlink()
    store.prepare(other)
    assert store.publish(theirs, facts={}, owner=other).version == 2


@pytest.mark.parametrize("model", ["new", "already served"])
def test_a_store_without_an_owner_is_claimed_by_the_next_push(
    store, make_saved_model, model
):
    store.publish(make_saved_model("a", b"a"), facts={})
    (store.root / ".versions" / "owner.json").unlink(missing_ok=True)

    store.prepare(DIGITS)
    assert _owner(store) is None  # It has pushed nothing yet.
    content = b"a" if model == "already served" else b"b"
    store.publish(make_saved_model("again", content), facts={}, owner=DIGITS)

    assert _owner(store) == DIGITS


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"pipeline": "digits"}'])
def test_an_unreadable_owner_is_an_error(store, make_saved_model, content):
    store.publish(make_saved_model("a", b"a"), facts={}, owner=DIGITS)
    (store.root / ".versions" / "owner.json").write_text(content)

    with pytest.raises(UsageError, match="cannot be read") as refused:
        store.publish(make_saved_model("b", b"b"), facts={}, owner=DIGITS)

    assert "owner.json" in str(refused.value.hint)
    assert len(store.versions()) == 1


def test_the_owner_file_names_the_push(store, make_saved_model):
    store.publish(make_saved_model(), facts={"pipeline_run_id": "r1"}, owner=DIGITS)

    written = json.loads((store.root / ".versions" / "owner.json").read_text())

    assert written == {
        "pipeline": "digits",
        "workspace_id": "aa11",
        "claimed_by": {"pipeline_run_id": "r1"},
    }
