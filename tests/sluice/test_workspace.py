"""The workspace: layout, format, and one run at a time."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import socket
import time
from pathlib import Path

import pytest

from sluice.errors import LockedError, WorkspaceError
from sluice.workspace import Workspace, locate, new_run_id

pytestmark = pytest.mark.unit


def test_prepare_makes_the_layout_and_can_be_repeated(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    made.prepare()
    assert sorted(os.listdir(made.root)) == [
        "artifacts",
        "inputs",
        "runs",
        "state",
        "workspace.json",
    ]
    assert json.loads((made.root / "workspace.json").read_text())["format"] == 1


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    made = Workspace(tmp_path)
    made.prepare()
    (tmp_path / "workspace.json").write_text('{"format": 2}')
    with pytest.raises(WorkspaceError, match="newer Sluice[\\s\\S]*format 2"):
        made.prepare()
    assert (tmp_path / "workspace.json").read_text() == '{"format": 2}'


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense"])
def test_a_damaged_description_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "workspace.json").write_text(text)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        Workspace(tmp_path).prepare()


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="cannot be written[\\s\\S]*--workspace"):
        Workspace(tmp_path / "file" / "w").prepare()


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    assert locate(tmp_path, "p").root == tmp_path / "workspace" / "p"
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "env"))
    assert locate(tmp_path, "p").root == tmp_path / "env" / "p"
    assert locate(tmp_path, "p", str(tmp_path / "o")).root == tmp_path / "o" / "p"


def test_run_ids_have_their_form_and_differ() -> None:
    ids = {new_run_id() for _ in range(50)}
    assert len(ids) > 40
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", item) for item in ids)


def test_runs_with_a_record_are_listed_oldest_first(tmp_path: Path) -> None:
    made = Workspace(tmp_path)
    assert made.run_ids() == []
    for run_id in ("20260102T000000Z-0000", "20260101T000000Z-aaaa"):
        made.run_dir(run_id).mkdir(parents=True)
        (made.run_dir(run_id) / "run.json").write_text("{}")
    made.run_dir("20260103T000000Z-bbbb").mkdir()
    assert made.run_ids() == ["20260101T000000Z-aaaa", "20260102T000000Z-0000"]


def _hold(root: str, ready: str) -> None:
    with Workspace(Path(root)).exclusive("sluice run digits"):
        Path(ready).touch()
        time.sleep(60)


def test_a_second_run_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    ready = tmp_path / "ready"
    owner = multiprocessing.get_context("fork").Process(
        target=_hold, args=(str(made.root), str(ready))
    )
    owner.start()
    while not ready.exists():
        time.sleep(0.01)
    with (
        pytest.raises(LockedError, match="in progress") as raised,
        made.exclusive("again"),
    ):
        pass
    assert raised.value.exit_code == 6
    assert f"process {owner.pid} on {socket.gethostname()}, since 2" in str(
        raised.value
    )
    assert "sluice run digits" in str(raised.value)
    owner.kill()
    owner.join()
    with made.exclusive("again") as lock:
        assert lock.note and f"dead owner: process {owner.pid} on" in lock.note
    with made.exclusive("again") as lock:
        assert lock.note is None
