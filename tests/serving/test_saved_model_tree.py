"""Listing, digest and copy of a SavedModel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serving.saved_model_tree import SavedModelTree
from sluice.errors import ServingError
from sluice.storage import digest

pytestmark = pytest.mark.unit


def test_copy_has_the_digest_and_the_empty_directories(make_saved_model, tmp_path):
    source = make_saved_model()
    tree = SavedModelTree.read(source)

    tree.copy_to(tmp_path / "copy")

    assert tree.digest == digest.of_tree(source) == digest.of_tree(tmp_path / "copy")
    assert (tmp_path / "copy" / "assets").is_dir()


def test_link_to_a_file_becomes_the_file(make_saved_model, tmp_path):
    source = make_saved_model()
    (tmp_path / "blob").write_bytes(b"linked")
    (source / "assets" / "vocabulary").symlink_to(tmp_path / "blob")

    SavedModelTree.read(source).copy_to(tmp_path / "copy")

    copied = tmp_path / "copy" / "assets" / "vocabulary"
    assert not copied.is_symlink()
    assert copied.read_bytes() == b"linked"


def test_text_proto_is_a_saved_model(make_saved_model):
    source = make_saved_model()
    (source / "saved_model.pb").rename(source / "saved_model.pbtxt")

    assert Path("saved_model.pbtxt") in SavedModelTree.read(source).files


def test_missing_directory_is_named(tmp_path):
    with pytest.raises(ServingError, match=r"(?s)cannot be read \(No such file.*gone"):
        SavedModelTree.read(tmp_path / "gone")


def test_file_in_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "model").write_text("")

    with pytest.raises(ServingError, match=r"cannot be read \(Not a directory\)"):
        SavedModelTree.read(tmp_path / "model")


def test_directory_without_a_model_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("x")

    with pytest.raises(ServingError, match=r"(?s)not a SavedModel.*1 other files"):
        SavedModelTree.read(tmp_path)


def test_empty_model_file_is_refused(make_saved_model):
    source = make_saved_model()
    (source / "saved_model.pb").write_bytes(b"")

    with pytest.raises(ServingError, match=r"(?s)not a SavedModel.*an empty saved_mo"):
        SavedModelTree.read(source)


def test_files_not_covered_by_the_digest_are_rejected(make_saved_model, tmp_path):
    source = make_saved_model()
    os.mkfifo(source / "variables" / "pipe")
    (source / "assets" / "linked").symlink_to(tmp_path, target_is_directory=True)
    (source / "assets" / "dangling").symlink_to(tmp_path / "gone")

    with pytest.raises(ServingError, match="contains special files") as caught:
        SavedModelTree.read(source)

    assert set(caught.value.examples) == {
        "variables/pipe",
        "assets/linked",
        "assets/dangling",
    }


def test_source_that_changes_before_the_copy_is_refused(make_saved_model, tmp_path):
    source = make_saved_model()
    tree = SavedModelTree.read(source)
    (source / "saved_model.pb").write_bytes(b"another graph")

    with pytest.raises(ServingError, match="changed while it was being copied"):
        tree.copy_to(tmp_path / "copy")
