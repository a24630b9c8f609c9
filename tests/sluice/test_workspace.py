"""The workspace: layout, permissions and lock."""

from __future__ import annotations

import multiprocessing
import re
import socket
import time
from pathlib import Path

import pytest

from sluice.errors import LockedError
from sluice.storage import atomic
from sluice.workspace import Workspace, locate, new_run_id, private_umask, workspaces_in

pytestmark = pytest.mark.unit


@pytest.fixture
def made(tmp_path):
    made = Workspace(tmp_path / "w")
    made.prepare()
    return made


def test_a_private_workspace_lets_others_pass_to_the_served_model_alone(made):
    made.metadata_db.touch()
    made.serving.mkdir()
    # SQLite's journal comes and goes. A link to nothing is listed and not there.
    (made.root / "metadata.db-journal").symlink_to("gone")
    made.prepare(private=True)
    (made.root / "metadata.db-journal").unlink()
    with private_umask(True):
        made.run_dir("one").mkdir()
        atomic.write_json(made.run_dir("one") / "run.json", {})
    # By a verb that does not know the config, such as `sluice status`.
    atomic.write_json(made.run_dir("one") / "run.json", {})
    modes = {
        path.relative_to(made.root).as_posix(): oct(path.stat().st_mode & 0o777)
        for path in [made.root, *made.root.rglob("*")]
    }
    assert modes == {
        ".": "0o711",
        "serving": "0o755",
        **dict.fromkeys(("artifacts", "documents", "inputs", "runs"), "0o700"),
        **dict.fromkeys(("runs/one", "state"), "0o700"),
        **dict.fromkeys(("metadata.db", "runs/one/run.json"), "0o600"),
    }
    with private_umask(False):
        made.run_dir("two").mkdir()
    assert made.run_dir("two").stat().st_mode & 0o777 == 0o755


def test_the_location_of_a_workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    assert locate(tmp_path, "p").root == tmp_path / "workspace" / "p"
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "env"))
    assert locate(tmp_path, "p").root == tmp_path / "env" / "p"
    with workspaces_in(str(tmp_path / "o")):
        assert locate(tmp_path, "p").root == tmp_path / "o" / "p"
    assert locate(tmp_path, "p").root == tmp_path / "env" / "p"


def test_run_ids_have_their_form_and_sort_by_age(made):
    first, later = new_run_id(), new_run_id(after="29990101T000000Z-ffff")
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", first) and first < later
    for run_id in (later, first):
        made.run_dir(run_id).mkdir()
        (made.run_dir(run_id) / "run.json").write_text("{}")
    made.run_dir("without a record").mkdir()
    assert made.run_ids() == [first, later]


def _start(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    process.start()
    return process


def _hold(root, ready):
    with Workspace(Path(root)).exclusive("sluice run digits"):
        Path(ready).touch()
        time.sleep(60)


def test_a_second_run_names_the_owner_of_the_lock(made, tmp_path):
    ready = tmp_path / "ready"
    owner = _start(_hold, str(made.root), str(ready))
    while not ready.exists():
        time.sleep(0.01)
    with pytest.raises(LockedError, match="in progress") as raised:
        made.exclusive("again").__enter__()
    assert raised.value.exit_code == 6
    named = f"process {owner.pid} on {socket.gethostname()}, since 2"
    assert named in str(raised.value) and "sluice run digits" in str(raised.value)
    owner.kill()
    owner.join()
    with made.exclusive("again"):
        assert made.is_running()


def _look(root, times):
    for _ in range(times):
        Workspace(Path(root)).is_running()
        time.sleep(0.005)


def test_a_test_of_the_lock_never_refuses_a_run(made):
    lookers = [_start(_look, str(made.root), 60) for _ in range(3)]
    runs = 0
    while any(looker.is_alive() for looker in lookers) or runs < 5:
        with made.exclusive("sluice run digits"):
            runs += 1
        time.sleep(0.01)
    for looker in lookers:
        looker.join()
        assert looker.exitcode == 0
