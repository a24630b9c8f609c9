"""Links, pipes and other foreign files in a model store."""

import os

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import UsageError

pytestmark = pytest.mark.fault


@pytest.fixture
def store(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    store.publish(make_saved_model("first", b"first"), facts={"n": 1})
    return store


@pytest.mark.parametrize("name", [".versions", ".lock", ".versions/next"])
def test_a_link_in_place_of_the_stores_own_is_named_and_not_followed(
    store, tmp_path, make_saved_model, name
):
    own, precious = store.root / name, tmp_path / "precious"
    own.rename(precious)
    own.symlink_to(precious)
    before = precious.read_bytes() if precious.is_file() else os.listdir(precious)
    source = make_saved_model("b", b"b")
    for attempt in (store.prepare, lambda: store.publish(source, facts={})):
        with pytest.raises(UsageError, match="contains a link") as refused:
            attempt()
        assert refused.value.where == str(own)
    after = precious.read_bytes() if precious.is_file() else os.listdir(precious)
    assert after == before
    own.unlink()
    assert store.publish(source, facts={}).version == 2


def test_foreign_files_are_kept(tmp_path, make_saved_model):
    """Names that the store itself uses are taken there already."""
    precious, root = tmp_path / "precious", tmp_path / "serving"
    names = (".staging/thesis.txt", ".versions/5.json", "old/thesis.txt")
    for name in names:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(name)
    precious.mkdir()
    (root / ".staging-0123456789abcdef").symlink_to(precious)
    LocalModelStore(root).publish(make_saved_model("b", b"b"), facts={})
    assert [(root / name).read_text() for name in names] == list(names)
    assert (root / ".staging-0123456789abcdef").is_symlink() and precious.is_dir()
