"""Links, folders and other foreign files in a model store."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import UsageError

pytestmark = pytest.mark.fault

TOP = 2**63 - 1


@pytest.fixture
def store(tmp_path: Path, make_saved_model) -> LocalModelStore:
    store = LocalModelStore(tmp_path / "serving")
    store.publish(make_saved_model("first", b"first"), facts={"n": 1})
    return store


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder that is none of the store's business."""
    folder = tmp_path / "precious"
    (folder / "below").mkdir(parents=True)
    for name in ("thesis.txt", "next", "5.json", "below/photo.jpg"):
        (folder / name).write_text(f"precious {name}")
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _link(path: Path, target: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        (".versions", "."),
        (".lock", "thesis.txt"),
        (".lock", "not there yet"),
        (".versions/next", "next"),
        (".versions/owner.json", "thesis.txt"),
    ],
)
def test_a_link_in_place_of_the_stores_own_is_named_and_not_followed(
    store, precious, make_saved_model, name, target
) -> None:
    _link(store.root / name, precious / target)
    before = _contents(precious)

    for attempt in (
        lambda: store.prepare(),
        lambda: store.publish(make_saved_model("b", b"b"), facts={}),
    ):
        with pytest.raises(UsageError, match="contains a link") as refused:
            attempt()
        assert refused.value.where == str(store.root / name)
        shutil.rmtree(store.root.parent / "b", ignore_errors=True)

    assert _contents(precious) == before
    assert [version.version for version in store.versions()] == [1]
    (store.root / name).unlink()
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 2


@pytest.mark.parametrize("name", [".staging", ".staging-0123456789abcdef", "old"])
def test_a_link_beside_the_versions_stays_and_so_does_its_target(
    store, precious, make_saved_model, name
) -> None:
    _link(store.root / name, precious)
    before = _contents(precious)

    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 2

    assert _contents(precious) == before
    assert (store.root / name).is_symlink()


def test_foreign_files_in_a_new_store_are_kept(precious, make_saved_model) -> None:
    """Names that the store itself uses, or used, are taken there already."""
    for name in (".staging", ".versions"):
        shutil.copytree(precious, precious / name)
    before = _contents(precious)

    store = LocalModelStore(precious)
    (precious / ".versions" / "next").unlink()
    store.publish(make_saved_model("b", b"b"), facts={})

    after = _contents(precious)
    assert {name for name in before if name not in after} == set()
    assert after[".versions/5.json"] == b"precious 5.json"
    assert after[".staging/thesis.txt"] == b"precious thesis.txt"


def test_a_version_replaced_by_a_link_is_not_intact(
    store, make_saved_model, tmp_path
) -> None:
    moved = tmp_path / "moved"
    shutil.move(store.root / "1", moved)
    (store.root / "1").symlink_to(moved)

    (version,) = store.versions()

    assert (version.version, version.digest) == (1, None)
    assert not version.is_intact()
    assert store.publish(moved, facts={}).version == 2


@pytest.mark.parametrize("kind", ["file", "folder", "pipe"])
def test_a_link_or_pipe_inside_a_version_is_a_difference(
    store, precious, tmp_path, kind
) -> None:
    inside = store.root / "1" / "variables"
    if kind == "file":  # With the very bytes that were pushed.
        index = inside / "variables.index"
        shutil.move(index, tmp_path / "elsewhere")
        index.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":  # Which no digest looks into.
        (inside / "more").symlink_to(precious)
    else:
        os.mkfifo(inside / "pipe")

    (version,) = store.versions()

    assert "link or a special file" in str(version.difference())
    assert not version.is_intact()


@pytest.mark.parametrize("record", ["link", "pipe"])
def test_a_record_that_is_not_a_file_is_ignored(store, tmp_path, record) -> None:
    path = store.root / ".versions" / "1.json"
    shutil.move(path, tmp_path / "1.json")
    if record == "link":
        path.symlink_to(tmp_path / "1.json")
    else:
        os.mkfifo(path)

    assert store.newest().digest is None


def test_a_folder_with_the_highest_number_is_named_and_nothing_is_lost(
    store, make_saved_model
) -> None:
    """The next number would be one that no server can read."""
    planted = store.root / str(TOP)
    planted.mkdir()
    (planted / "file").write_text("planted")
    before = _contents(store.root)
    source = make_saved_model("b", b"b")

    for attempt in (
        lambda: store.prepare(),
        lambda: store.publish(source, facts={}),
    ):
        with pytest.raises(
            UsageError, match="(?i)no version number is left"
        ) as refused:
            attempt()
        assert refused.value.where == str(planted)
        assert _contents(store.root) == before

    source_of_it, aside = str(refused.value.hint).rpartition("mv ")[2].split()
    shutil.move(source_of_it, aside)
    store.prepare()
    assert store.publish(source, facts={}).version == 2


def test_a_counter_beyond_the_highest_number_is_named(store, make_saved_model) -> None:
    """As it was left where a folder had the highest number before."""
    counter = store.root / ".versions" / "next"
    counter.write_text(f"{TOP + 2}\n")

    with pytest.raises(UsageError, match="(?i)no version number is left") as refused:
        store.publish(make_saved_model("b", b"b"), facts={})

    assert refused.value.where == str(counter)
    assert counter.read_text() == f"{TOP + 2}\n"


def test_the_highest_number_itself_can_be_pushed(store, make_saved_model) -> None:
    (store.root / ".versions" / "next").write_text(f"{TOP}\n")

    assert store.publish(make_saved_model("b", b"b"), facts={}).version == TOP
    assert store.newest().is_intact()
