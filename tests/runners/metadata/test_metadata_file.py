"""A damaged metadata file is renamed and replaced by its copy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runners.metadata.metadata_file import check_metadata, check_readable, keep_copy
from runners.metadata.read_metadata import read_metadata
from sluice.errors import WorkspaceError
from sluice.workspace import Workspace

pytestmark = [pytest.mark.unit, pytest.mark.fault]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "w")
    made.prepare()
    with closing(sqlite3.connect(made.metadata_db)) as database, database:
        database.execute("CREATE TABLE MLMDEnv (schema_version INTEGER)")
        database.execute("CREATE TABLE Facts (text TEXT)")
        rows = [(f"fact {number} " + "x" * 200,) for number in range(500)]
        database.executemany("INSERT INTO Facts VALUES (?)", rows)
    return made


def _facts(workspace: Workspace) -> int:
    with closing(sqlite3.connect(workspace.metadata_db)) as database:
        return database.execute("SELECT count(*) FROM Facts").fetchone()[0]


def _overwrite(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8000:40000] = b"\xff" * 32000
    path.write_bytes(data)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50000])


def _replace(path: Path) -> None:
    path.write_text("this is no database\n" * 1000)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = [_overwrite, _truncate, _replace]


def test_a_valid_or_missing_file_is_left_alone(workspace: Workspace) -> None:
    assert check_metadata(workspace) == []
    workspace.metadata_db.unlink()
    assert check_metadata(workspace) == []
    assert not workspace.metadata_db.exists()


@pytest.mark.parametrize("damage", [*DAMAGES, _empty])
def test_a_damaged_file_is_replaced_by_the_copy(workspace: Workspace, damage) -> None:
    keep_copy(workspace)
    damage(workspace.metadata_db)
    damaged = workspace.metadata_db.read_bytes()
    (note,) = check_metadata(workspace)
    assert "went back to the copy of" in note
    (aside,) = workspace.root.glob("metadata.db.damaged-*")
    assert aside.name in note and aside.read_bytes() == damaged
    assert _facts(workspace) == 500
    assert check_metadata(workspace) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_without_a_copy_the_damaged_file_is_kept(workspace: Workspace, damage) -> None:
    damage(workspace.metadata_db)
    before = workspace.metadata_db.read_bytes()
    with pytest.raises(WorkspaceError, match="there is no copy of it") as raised:
        check_metadata(workspace)
    aside = "other" if damage is _replace else "damaged"
    path = workspace.metadata_db
    command = f"mv {path} {path}.{aside}, then run again"
    assert raised.value.hint and raised.value.hint.startswith(command)
    assert workspace.metadata_db.read_bytes() == before


def test_a_damaged_copy_is_not_used(workspace: Workspace) -> None:
    keep_copy(workspace)
    _replace(workspace.root / "state" / "metadata.copy.db")
    _replace(workspace.metadata_db)
    with pytest.raises(WorkspaceError, match="there is no copy of it"):
        check_metadata(workspace)


def test_a_database_without_ml_metadata_is_damaged(workspace: Workspace) -> None:
    workspace.metadata_db.unlink()
    with closing(sqlite3.connect(workspace.metadata_db)) as database, database:
        database.execute("CREATE TABLE Songs (title TEXT)")
    with pytest.raises(WorkspaceError, match="is not a database of ML Meta") as raised:
        check_metadata(workspace)
    assert raised.value.actual == "it is not a database of ML Metadata"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_reader_names_the_damage_and_changes_nothing(
    workspace: Workspace, damage
) -> None:
    check_readable(workspace)
    keep_copy(workspace)
    damage(workspace.metadata_db)
    before = workspace.metadata_db.read_bytes()
    what = "is not a database" if damage is _replace else "is damaged"
    with pytest.raises(WorkspaceError, match=f"metadata {what}") as raised:
        read_metadata(workspace.metadata_db)
    assert (raised.value.hint or "").startswith("sluice run w: a run replaces it")
    assert workspace.metadata_db.read_bytes() == before


def test_the_journal_of_a_killed_writer_is_rolled_back(workspace: Workspace) -> None:
    """A journal beside the file is no damage."""
    database = sqlite3.connect(workspace.metadata_db, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN")
    database.execute("DELETE FROM Facts")
    journal = workspace.metadata_db.with_name("metadata.db-journal")
    kept = workspace.metadata_db.read_bytes(), journal.read_bytes()
    database.execute("ROLLBACK")
    database.close()
    workspace.metadata_db.write_bytes(kept[0])
    journal.write_bytes(kept[1])
    assert check_metadata(workspace) == []
    assert _facts(workspace) == 500
