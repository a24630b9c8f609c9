"""Model store in a directory; ``tests/cloud/test_model_stores.py`` has the rest."""

import os

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import ServingError

pytestmark = pytest.mark.unit


@pytest.fixture
def store(tmp_path):
    return LocalModelStore(tmp_path / "serving")


def test_a_file_with_a_number_is_no_version_but_keeps_it(store, make_saved_model):
    store.publish(make_saved_model("a", b"a"), facts={})
    (store.root / "5").write_text("")

    assert store.newest().version == 1
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 6
    assert not [name for name in os.listdir(store.root) if "staging" in name]


def test_a_file_in_place_of_the_root_is_named(store, make_saved_model):
    store.root.write_text("")

    with pytest.raises(ServingError, match="could not be pushed") as push:
        store.publish(make_saved_model(), facts={})

    assert push.value.where == str(store.root)
