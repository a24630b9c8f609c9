"""Buttons ask first, and start the command that their page has shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.operations.find_run import FoundRun
from runners.ui.actions import find_action, possible_actions
from runners.ui.child_processes import ChildProcesses, Command
from runners.ui.tensorboard import address
from sluice.project import own_root
from sluice.record.events import (
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFailure,
    NodeFinished,
)
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

RUN = "/pipelines/digits/runs/20260101T000000Z-aaaa/"


def blocked_run(written: Any) -> FoundRun:
    """Writes a run that the data gate has stopped."""
    recorder = written.begin(written.FIRST)
    recorder.apply(GraphCompiled(nodes=(GraphNode("DataGate", "DataGate", ()),)))
    row = Check("image", "train", None, None, None, False, kind="new_value")
    gate = Verdict("data", (row,)).to_dict()
    error = NodeFailure("the data is not accepted", 3, gate=True)
    recorder.apply(
        NodeFinished(node="DataGate", state="failed", error=error, gates=(gate,))
    )
    recorder.apply(Finished())
    recorder.end()
    return FoundRun(written.workspace, recorder.record)


def names(found: FoundRun) -> list[str]:
    return [action.name for action in possible_actions(found)]


def test_which_runs_have_which_buttons(written: Any) -> None:
    workspace = written.workspace
    first = RunRecord.load(written.fail(written.FIRST))
    assert names(FoundRun(workspace, first)) == ["resume"]
    with workspace.exclusive("test"):
        assert names(FoundRun(workspace, first)) == []
        running = written.begin(written.SECOND).record
        assert names(FoundRun(workspace, running)) == ["cancel"]
    # Only the last run can be resumed.
    assert names(FoundRun(workspace, first)) == []


def test_of_a_service_s_runs_the_one_of_the_page_is_cancelled(written: Any) -> None:
    found = FoundRun(written.workspace, written.begin(written.FIRST).record)
    command = find_action(found, "cancel").command(found, {})
    assert command.words[:3] == ["sluice", "cancel", "digits"]
    assert f"--run={written.FIRST}" not in command.words
    (found.run_dir / "job.json").write_text("{}")
    command = find_action(found, "cancel").command(found, {})
    assert f"--run={written.FIRST}" in command.words


def test_a_run_that_the_data_gate_has_stopped(written: Any) -> None:
    found = blocked_run(written)
    assert names(found) == ["accept-data", "accept-changes"]
    command = find_action(found, "accept-data").command(
        found, {"reason": [" so be it "]}
    )
    base = f"--workspace={written.workspace.root.parent}"
    words = ["sluice", "run", "digits", "--accept-data=so be it", base]
    assert command.words == words
    changes = {"change": ["image.new_value", "--all"]}
    command = find_action(found, "accept-changes").command(found, changes)
    assert command.words[:4] == ["sluice", "schema", "accept", "digits"]
    # What a form names is a change, never an option.
    assert command.words[-3:] == ["--", "image.new_value", "--all"]
    written.fail(written.SECOND)
    assert names(found) == ["accept-changes"]


def test_the_config_is_loaded_as_the_run_has_loaded_it(written: Any) -> None:
    found = blocked_run(written)
    path = found.run_dir / "config.json"
    text = path.read_text()
    path.write_text(
        text.replace('"profile": null', '"profile": "configs/profiles/gpu.yaml"')
    )
    path.write_text(
        path.read_text().replace('"overrides": []', '"overrides": ["train.epochs=3"]')
    )
    command = find_action(found, "accept-data").command(found, {"reason": ["ok"]})
    assert command.words[3:5] == ["--profile=gpu", "--set=train.epochs=3"]
    path.write_text("damaged")
    assert names(found) == []


def test_a_button_asks_and_shows_the_output(
    written: Any, serve_ui: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(own_root()))
    written.fail(written.FIRST)
    for path in (written.root / "data" / "digits").iterdir():
        path.write_bytes(b"other data")
    client = serve_ui()
    asked = client.get(f"{RUN}do/resume")
    command = f"sluice resume digits --run={written.FIRST} --workspace="
    assert command in asked.text and client.children.all() == []
    answer = client.post(f"{RUN}do/resume")
    assert (answer.status, answer.headers["location"]) == (303, "/commands/1")
    *_, (_, text), (last, _) = client.events("/commands/1")
    assert last == "end"
    assert command in text and "ended with exit code 2" in text
    assert "error: run" in text and "cannot be resumed" in text
    assert "/commands/1" in client.get("/").text


def test_a_reason_is_needed(written: Any, serve_ui: Callable[..., Any]) -> None:
    blocked_run(written)
    client = serve_ui()
    assert "Reason" in client.get(f"{RUN}do/accept-data").text
    for reason in ("", "  "):
        answer = client.post(f"{RUN}do/accept-data", {"reason": reason})
        assert (answer.status, "a reason is needed" in answer.text) == (400, True)
    assert client.post(f"{RUN}do/accept-changes").status == 400
    assert client.post(f"{RUN}do/resume").status == 409
    assert client.children.all() == []


def test_what_is_tied_to_the_server_ends_with_it(
    tmp_path: Path, is_gone: Callable[[int], bool], wait_for: Callable[..., Any]
) -> None:
    children = ChildProcesses()
    stubborn = tmp_path / "stubborn"
    script = (
        "import pathlib, signal, subprocess, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"pathlib.Path({str(stubborn)!r}).write_text(str(child.pid))\n"
        "time.sleep(1000)"
    )
    tied = Command([sys.executable, "-c", script], ["tied"], ends_with_server=True)
    free = Command(["sleep", "1000"], ["free"])
    about = {"title": "t", "pipeline": "p", "url": "/"}
    first = children.start(tied, **about)
    assert children.start(tied, **about) is first
    other = children.start(free, **about)
    assert children.start(free, **about) is not other
    grandchild = int(wait_for(lambda: stubborn.exists() and stubborn.read_text(), "it"))
    began = time.monotonic()
    children.close()
    assert time.monotonic() - began < 10
    assert first.exit_code == -9
    wait_for(lambda: is_gone(grandchild), "the end of the group")
    assert not first.output_file.exists()
    for child in children.all():
        if child is not first:
            assert child.exit_code is None
            child.process.kill()
            child.process.wait()


def test_the_address_of_tensorboard() -> None:
    printed = "TensorBoard 2.16.2 at http://127.0.0.1:40123/ (Press CTRL+C to quit)\n"
    assert address("loading\n" + printed) == "http://127.0.0.1:40123/"
    assert address("TensorBoard at http://evil.example:80/") is None
