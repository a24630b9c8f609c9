"""Links, pipes and other foreign files in a model store."""

import os
import shutil

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


def link_version(root, aside):
    shutil.move(root / "1", aside)
    (root / "1").symlink_to(aside)


def link_file(root, aside):  # With the very bytes that were pushed.
    index = root / "1" / "variables" / "variables.index"
    shutil.move(index, aside)
    index.symlink_to(aside)


def link_folder(root, aside):  # Which no digest looks into.
    (root / "1" / "variables" / "more").symlink_to(aside.parent)


def plant_pipe(root, aside):
    os.mkfifo(root / "1" / "variables" / "pipe")


def link_record(root, aside):
    path = root / ".versions" / "1.json"
    shutil.move(path, aside)
    path.symlink_to(aside)


@pytest.mark.parametrize(
    "plant", [link_version, link_file, link_folder, plant_pipe, link_record]
)
def test_a_version_with_a_link_or_pipe_is_not_intact(store, tmp_path, plant):
    plant(store.root, tmp_path / "aside")
    (version,) = store.versions()
    assert not version.is_intact()


def test_no_number_is_left_after_the_highest(store, make_saved_model):
    top = 2**63 - 1
    (store.root / ".versions" / "next").write_text(f"{top}\n")
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == top
    with pytest.raises(UsageError, match="(?i)no version number is left"):
        store.publish(make_saved_model("c", b"c"), facts={})
