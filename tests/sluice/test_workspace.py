"""The workspace: layout, format, permissions and lock."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from sluice.errors import LockedError, WorkspaceError
from sluice.project import own_root
from sluice.record.events import Finished
from sluice.record.journal import Journal
from sluice.storage import atomic
from sluice.workspace import Workspace, locate, new_run_id, private_umask

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


def test_a_private_workspace_lets_others_pass_to_the_served_model_alone(
    tmp_path: Path,
) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    made.metadata_db.touch()
    made.serving.mkdir()
    made.prepare(private=True)
    with private_umask(True):
        made.run_dir("one").mkdir()
        atomic.write_json(made.run_dir("one") / "run.json", {})
        Journal(made.run_dir("one")).append(Finished())
    # By a verb that does not know the config, such as `sluice status`.
    atomic.write_json(made.run_dir("one") / "run.json", {})
    modes = {
        path.relative_to(made.root).as_posix(): oct(path.stat().st_mode & 0o777)
        for path in [made.root, *made.root.rglob("*")]
    }
    assert modes == {
        ".": "0o711",
        "serving": "0o755",
        **dict.fromkeys(("artifacts", "inputs", "runs", "runs/one", "state"), "0o700"),
        **dict.fromkeys(
            (
                "metadata.db",
                "workspace.json",
                "runs/one/run.json",
                "runs/one/journal.jsonl",
            ),
            "0o600",
        ),
    }
    with private_umask(False):
        made.run_dir("two").mkdir()
    assert made.run_dir("two").stat().st_mode & 0o777 == 0o755


def test_files_removed_meanwhile_do_not_fail_a_private_workspace(
    tmp_path: Path,
) -> None:
    """SQLite's journal comes and goes. A link to nothing is listed and not there."""
    made = Workspace(tmp_path / "w")
    made.prepare()
    (made.root / "metadata.db-journal").symlink_to("gone")
    made.prepare(private=True)
    assert made.root.stat().st_mode & 0o777 == 0o711
    assert made.runs.stat().st_mode & 0o777 == 0o700


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    made = Workspace(tmp_path)
    made.prepare()
    (tmp_path / "workspace.json").write_text('{"format": 2}')
    with pytest.raises(
        WorkspaceError, match="newer version of Sluice[\\s\\S]*format 2"
    ):
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


def test_the_location_of_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_second_run_names_the_owner_of_the_lock(tmp_path: Path) -> None:
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


def _start(target, *args: object) -> BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    process.start()
    return process


def _look(root: str, times: int) -> None:
    """What looking verbs do: ask, and complete a record."""
    made = Workspace(Path(root))
    for _ in range(times):
        made.is_running()
        # A run in progress completes the records itself.
        with suppress(LockedError), made.exclusive("sluice status", brief=True):
            time.sleep(0.01)
        time.sleep(0.005)


def test_a_test_of_the_lock_never_refuses_a_run(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    lookers = [_start(_look, str(made.root), 40) for _ in range(3)]
    runs = 0
    while any(looker.is_alive() for looker in lookers) or runs < 5:
        with made.exclusive("sluice run digits"):
            runs += 1
        time.sleep(0.01)
    for looker in lookers:
        looker.join()
        assert looker.exitcode == 0


def _hold_unnamed(root: str, ready: str, silent_s: float) -> None:
    made = Workspace(Path(root))
    with atomic.lock(made.root / "state" / "run.lock") as handle:
        Path(ready).touch()
        time.sleep(silent_s)
        facts = {"pid": os.getpid(), "host": socket.gethostname(), "command": "run"}
        os.pwrite(handle, json.dumps(facts).encode(), 0)
        time.sleep(60)


def test_a_refusal_waits_for_the_owners_name(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    ready = tmp_path / "ready"
    owner = _start(_hold_unnamed, str(made.root), str(ready), 0.5)
    while not ready.exists():
        time.sleep(0.01)
    try:
        with (
            pytest.raises(LockedError, match=f"process {owner.pid} on "),
            made.exclusive("again"),
        ):
            pass
    finally:
        owner.kill()
        owner.join()


def test_the_wait_for_a_brief_owner_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.run_lock._ORPHANS_END_S", 0.3)
    made = Workspace(tmp_path / "w")
    made.prepare()
    with (
        made.exclusive("sluice status", brief=True),
        pytest.raises(LockedError, match="sluice status"),
        made.exclusive("sluice run digits"),
    ):
        pass


def test_on_wait_is_called_for_a_run_only(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    told: list[str] = []
    looker = _start(_look, str(made.root), 20)
    while looker.is_alive():
        with made.exclusive("sluice run digits", wait=True, on_wait=told.append):
            time.sleep(0.01)
        time.sleep(0.01)
    looker.join()
    assert looker.exitcode == 0
    assert told == []


def test_is_running_writes_nothing(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    (made.root / "state").mkdir(parents=True)
    assert not made.is_running()
    assert os.listdir(made.root / "state") == []
    with made.exclusive("run"):
        assert made.is_running()
    assert not made.is_running()


def test_a_brief_owner_is_marked(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    lock = made.root / "state" / "run.lock"
    with made.exclusive("sluice status", brief=True):
        assert json.loads(lock.read_text())["brief"] is True
    with made.exclusive("sluice run"):
        assert "brief" not in json.loads(lock.read_text())


_TRY = """
import sys
from pathlib import Path
from sluice.errors import WorkspaceError
from sluice.workspace import Workspace

workspace = Workspace(Path(sys.argv[1]))
print(workspace.is_running())
try:
    with workspace.exclusive("run"):
        print("locked")
except WorkspaceError as error:
    print(int(error.exit_code), error.what, error.where, error.actual)
"""


def _try_without_rights(root: Path) -> list[str]:
    """Asks and locks in a process that file modes bind, also where this is root."""
    command = [sys.executable, "-c", _TRY, str(root)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root ignores file modes, and there is no setpriv")
        command = [
            "setpriv",
            "--bounding-set=-dac_override,-dac_read_search",
            "--",
            *command,
        ]
    done = subprocess.run(command, cwd=own_root(), capture_output=True, text=True)
    if "setpriv:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_lock_file_that_may_not_be_used(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    lock = made.root / "state" / "run.lock"
    refused = f"2 the workspace cannot be written {lock} Permission denied"
    lock.parent.chmod(0o555)
    try:
        assert _try_without_rights(made.root) == ["False", refused]
        lock.parent.chmod(0o755)
        lock.touch()
        lock.chmod(0o444)
        assert _try_without_rights(made.root) == ["False", refused]
        lock.chmod(0)
        assert _try_without_rights(made.root) == ["True", refused]
    finally:
        lock.parent.chmod(0o755)


@pytest.mark.fault
def test_a_workspace_on_a_read_only_disk(tmp_path: Path) -> None:
    made = Workspace(tmp_path / "w")
    made.prepare()
    with made.exclusive("run"):
        pass
    for options in (["--bind"], ["-o", "remount,ro,bind"]):
        mount = ["mount", *options, str(made.root), str(made.root)]
        if subprocess.run(mount, capture_output=True).returncode:
            subprocess.run(["umount", str(made.root)], capture_output=True)
            pytest.skip("mounting needs root")
    try:
        assert not made.is_running()
        with (
            pytest.raises(WorkspaceError, match="cannot be written[\\s\\S]*Read-only"),
            made.exclusive("again"),
        ):
            pass
    finally:
        subprocess.run(["umount", str(made.root)], check=True)
