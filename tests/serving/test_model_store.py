"""Model store in a directory; ``tests/cloud/test_model_stores.py`` has the rest."""

import os

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import ServingError

pytestmark = pytest.mark.unit


@pytest.fixture
def store(tmp_path):
    return LocalModelStore(tmp_path / "serving")


def test_root_holds_only_numbers_and_dot_names(store, make_saved_model):
    store.publish(make_saved_model("a", b"a"), facts={})
    store.publish(make_saved_model("b", b"b"), facts={})

    names = set(os.listdir(store.root))

    assert {name for name in names if not name.startswith(".")} == {"1", "2"}
    assert not [name for name in names if name.startswith(".staging")]


@pytest.mark.parametrize("content", [None, "", "not a number"])
def test_lost_counter_goes_on_after_the_newest(store, make_saved_model, content):
    store.publish(make_saved_model("a", b"a"), facts={})
    store.publish(make_saved_model("b", b"b"), facts={})
    counter = store.root / ".versions" / "next"
    counter.unlink() if content is None else counter.write_text(content)

    assert store.publish(make_saved_model("c", b"c"), facts={}).version == 3


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


def test_file_in_place_of_the_root_is_named(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    store.root.write_text("")

    with pytest.raises(ServingError, match=r"could not be pushed.*\n.*serving") as push:
        store.publish(make_saved_model(), facts={})
    with pytest.raises(ServingError, match="cannot be read: Not a directory"):
        store.versions()

    assert push.value.where == str(store.root)
    assert "can write" in str(push.value.hint)
