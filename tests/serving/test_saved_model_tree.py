"""Listing, digest and copy of a SavedModel."""

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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, r"(?s)cannot be read \(No such file.*it"),
        ("", r"cannot be read \(Not a directory\)"),
        ({"notes.txt": "x"}, r"(?s)not a SavedModel.*1 other files"),
        ({"saved_model.pb": ""}, r"(?s)not a SavedModel.*an empty saved_mo"),
    ],
)
def test_what_is_no_saved_model_is_refused(tmp_path, content, words):
    path = tmp_path / "it"
    if isinstance(content, dict):
        path.mkdir()
        for name, text in content.items():
            (path / name).write_text(text)
    elif content is not None:
        path.write_text(content)
    with pytest.raises(ServingError, match=words):
        SavedModelTree.read(path)


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
