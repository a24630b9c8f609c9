"""Metadata that is lost although a model has been pushed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from runners.metadata.metadata_file import check_metadata, copy_metadata
from runners.metadata.read_metadata import read_metadata
from sluice.errors import UsageError, WorkspaceError

pytestmark = [pytest.mark.unit, pytest.mark.fault]


def _link_to_nothing(path):
    path.unlink()
    path.symlink_to("nowhere")


def _truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def _without_rows(path):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM Artifact")


def _songs(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE Songs (title TEXT)")


LOSSES = {
    "is missing": lambda path: path.unlink(),
    "is missing;": _link_to_nothing,
    "is empty": lambda path: path.write_bytes(b""),
    "is empty;": _without_rows,
    "is damaged": _truncate,
    "is damaged (file is not a database)": lambda path: path.write_text("no" * 1000),
    "is empty; without": _songs,
}


def _check(past, *reason):
    return check_metadata(past.workspace, [past.workspace.serving], *reason)


@pytest.mark.parametrize("problem", LOSSES)
def test_lost_metadata_beside_a_pushed_version_is_refused(past, problem):
    """Found: the next model was pushed without being compared with the served one."""
    past.run(push=True)
    assert _check(past) == []
    path = past.workspace.metadata_db
    LOSSES[problem](path)
    with pytest.raises(WorkspaceError) as raised:
        _check(past)
    assert f"the pipeline's metadata {problem}" in str(raised.value)
    assert "sluice run digits --without-baseline REASON" in str(raised.value)
    assert raised.value.exit_code == 2

    was_there = os.path.lexists(path)
    (note,) = _check(past, "disk failure")
    assert note.startswith("begun without a baseline (disk failure): the metadata is")
    assert not os.path.lexists(path)
    kept = list(path.parent.glob("metadata.db.lost-*"))
    assert [item.name in note for item in kept] == [True] * was_there
    (note,) = _check(past, "killed before the first artifact")


def test_a_first_run_needs_no_metadata(past):
    past.workspace.metadata_db.unlink()
    assert _check(past) == []
    (past.workspace.serving / "7").mkdir(parents=True)
    assert _check(past) == [], "a version that another program has put there"


def test_a_reason_is_refused_where_nothing_is_lost(past):
    past.run(push=True)
    with pytest.raises(UsageError, match="the pipeline's metadata is there"):
        _check(past, "a whim")
    assert past.workspace.metadata_db.exists()


def test_metadata_that_cannot_be_opened_is_not_called_lost(past):
    past.run(push=True)
    path = past.workspace.metadata_db
    path.rename(path.with_name("elsewhere"))
    path.mkdir()
    with pytest.raises(WorkspaceError, match="cannot be read") as raised:
        _check(past, "disk failure")
    assert "unable to open database file" in str(raised.value)
    assert path.is_dir()


def test_the_journal_of_a_killed_writer_is_rolled_back(past):
    """A journal beside the file is no damage."""
    past.run(push=True)
    path = past.workspace.metadata_db
    rows = len(past.graph().artifacts)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN")
    database.execute("DELETE FROM Artifact")
    journal = path.with_name("metadata.db-journal")
    kept = path.read_bytes(), journal.read_bytes()
    database.execute("ROLLBACK")
    database.close()
    path.write_bytes(kept[0])
    journal.write_bytes(kept[1])
    assert _check(past) == []
    assert len(past.graph().artifacts) == rows


def test_a_copy_has_what_is_committed_and_the_original_is_untouched(past, tmp_path):
    """A dry run asks and writes in a copy, also while another program writes."""
    past.run(push=True)
    path, copy = past.workspace.metadata_db, tmp_path / "copy.db"
    before = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM Artifact")
        copy_metadata(path, copy)
        writer.execute("ROLLBACK")
    assert read_metadata(copy) == past.graph()
    _without_rows(copy)
    assert path.read_bytes() == before and past.graph().artifacts


@pytest.mark.parametrize("problem", [*LOSSES][2:])
def test_lost_metadata_is_not_copied(past, tmp_path, problem):
    past.run(push=True)
    LOSSES[problem](past.workspace.metadata_db)
    with pytest.raises(WorkspaceError, match="metadata is") as raised:
        copy_metadata(past.workspace.metadata_db, tmp_path / "copy.db")
    assert raised.value.where == str(past.workspace.metadata_db)
