"""``status``, ``logs`` and what ``resume`` refuses, from records and logs on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from pipeline.config.serialize import write_stored_config
from pipeline.config.validate import validate_config
from pipeline.graph.choose_spans import choose_spans
from runners.cache.run_inputs import run_inputs
from sluice.errors import DataError
from sluice.project import own_root
from sluice.record.events import (
    Finished,
    GraphDrawn,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeStarted,
    RunEnded,
    RunStarted,
    Stopped,
)
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

Sluice = Callable[..., tuple[int, str, str]]
GRAPH = GraphDrawn(
    nodes=(
        GraphNode("Examples", "TFRecordGen", ()),
        GraphNode("Trainer", "Trainer", ("Examples",)),
    )
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the digits config, its schema, and files for its patterns."""
    for path in ("configs/digits.yaml", "schemas/digits/schema.pbtxt"):
        target = tmp_path / path
        target.parent.mkdir(parents=True)
        target.write_text((own_root() / path).read_text())
    data = tmp_path / "data" / "digits"
    data.mkdir(parents=True)
    for split in ("train", "eval", "test"):
        (data / f"{split}-0").write_bytes(split.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    return tmp_path


@pytest.fixture
def workspace(root: Path) -> Workspace:
    made = Workspace(root / "workspace" / "digits")
    made.prepare()
    return made


def _begin(workspace: Workspace, run_id: str) -> Recorder:
    """Begins a run as the command line does, up to its first node."""
    run_dir = workspace.run_dir(run_id)
    (run_dir / "logs").mkdir(parents=True)
    config = validate_config(load_config("digits")).config
    write_stored_config(config, run_dir / "config.json")
    digests = FileDigests(workspace.digests_file)
    choice = choose_spans(config)
    inputs = run_inputs(config, workspace.root, workspace.serving, choice, digests)
    (run_dir / "inputs.json").write_text(json.dumps(inputs.to_dict()))
    recorder = Recorder(run_dir)
    recorder.apply(
        RunStarted(
            run_id=run_id,
            pipeline="digits",
            command="sluice run digits",
            destination=str(workspace.serving),
            config={},
            workers=1,
            use_cache=True,
            forced=(),
            from_nodes=(),
            to_nodes=(),
            accept_data=None,
            resume_command=f"sluice resume digits --run {run_id}",
        )
    )
    recorder.apply(GRAPH)
    return recorder


def _fail(workspace: Workspace, run_id: str) -> None:
    recorder = _begin(workspace, run_id)
    recorder.apply(NodeStarted(node="Examples", attempt=1))
    (workspace.run_dir(run_id) / "logs" / "Examples.log").write_text("one\ntwo\n")
    recorder.apply(
        NodeFinished(
            node="Examples",
            state="failed",
            duration_s=61.0,
            reason="Examples failed: boom",
            error=NodeFailure("Examples failed: boom", 7, log_tail=("two",)),
            peak_memory_bytes=3_100_000_000,
        )
    )
    recorder.apply(Finished())
    recorder.end()


FIRST, SECOND = "20260101T000000Z-aaaa", "20260102T000000Z-bbbb"


def test_status_shows_nodes_memory_and_the_way_on(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    code, out, _ = sluice("status", "digits")
    assert code == 0
    lines: dict[str, str] = {}
    for line in filter(str.strip, out.splitlines()):
        lines.setdefault(line.split()[0], line)
    assert "failed" in lines["Examples"] and "1m01s" in lines["Examples"]
    assert "3.1 GB" in lines["Examples"] and "boom" in lines["Examples"]
    assert f"sluice resume digits --run {FIRST}" in lines["resume:"]
    document = json.loads(sluice("status", "digits", "--json")[1])
    assert document == RunRecord.load(workspace.run_dir(FIRST)).to_dict()


def test_status_of_a_run_by_the_beginning_of_its_id(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    _fail(workspace, SECOND)
    assert FIRST in sluice("status", "digits", "--run", "20260101")[1]
    code, _, err = sluice("status", "digits", "--run", "2026")
    assert code == 2 and "several runs" in err and FIRST in err and SECOND in err
    code, _, err = sluice("status", "digits", "--run", "2027")
    assert code == 2 and "there is no run '2027'" in err


def test_status_of_everything(root: Path, workspace: Workspace, sluice: Sluice) -> None:
    assert "nothing has run yet" in sluice("status")[1]
    _fail(workspace, FIRST)
    _fail(workspace, SECOND)
    out = sluice("status")[1]
    assert SECOND in out and FIRST not in out
    (row,) = json.loads(sluice("status", "--json")[1])
    assert row["run_id"] == SECOND


def test_status_works_while_the_config_is_broken(
    root: Path, workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    (root / "configs" / "digits.yaml").write_text("version: [")
    assert FIRST in sluice("status", "digits")[1]
    code, _, err = sluice("status", "other")
    assert code == 2 and "other" in err


def test_a_killed_run_is_completed_by_whoever_looks(
    workspace: Workspace, sluice: Sluice
) -> None:
    recorder = _begin(workspace, FIRST)
    recorder.apply(NodeStarted(node="Examples", attempt=1))
    assert RunRecord.load(workspace.run_dir(FIRST)).status == "running"
    epoch: dict[str, Any] = {"event": "epoch", "epoch": 3, "epochs": 8}
    epoch |= {"duration_s": 2.0, "metrics": {"val_accuracy": 0.5}}
    recorder.show_progress("Examples", epoch)
    recorder.tick()
    with workspace.exclusive("sluice run digits"):
        assert "running" in sluice("runs", "digits")[1]
        shown = sluice("status", "digits")[1]
        said = r"Examples +running +\d+\.\ds +epoch 3/8  val_accuracy 0\.5000"
        assert re.search(said, shown), shown
    assert "interrupted" in sluice("runs", "digits")[1]
    record = RunRecord.load(workspace.run_dir(FIRST))
    assert record.status == "interrupted" and record.exit_code is None
    assert record.node("Examples").state == "interrupted"
    assert record.error and record.error.message == "the run was killed"
    assert record.resume_command == f"sluice resume digits --run {FIRST}"


def test_logs_are_those_of_the_newest_run_that_has_them(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    recorder = _begin(workspace, SECOND)
    recorder.apply(Finished())
    recorder.end()
    assert sluice("logs", "digits", "Examples") == (0, "one\ntwo\n", "")
    document = json.loads(sluice("logs", "digits", "Examples", "--json")[1])
    assert (document["run_id"], document["lines"]) == (FIRST, ["one", "two"])


def test_logs_that_are_not_there(workspace: Workspace, sluice: Sluice) -> None:
    _fail(workspace, FIRST)
    code, _, err = sluice("logs", "digits", "Examplez")
    assert code == 2 and "there is no node 'Examplez'" in err
    assert "expected: one of start, Examples, Trainer" in err
    assert "try:      did you mean 'Examples'?" in err
    code, _, err = sluice("logs", "digits", "Trainer")
    assert code == 2 and "Trainer has no log" in err and "not reached" in err


@pytest.mark.parametrize("node", ["../../../secret", "{root}/secret", "..", "."])
def test_logs_are_those_of_nodes(
    root: Path, workspace: Workspace, sluice: Sluice, node: str
) -> None:
    _fail(workspace, FIRST)
    for folder in (root, workspace.root):
        (folder / "secret.log").write_text("a secret")
    code, out, err = sluice("logs", "digits", node.format(root=root), "--json")
    assert (code, out) == (2, "")
    assert "expected: one of start, Examples, Trainer" in err or "no node" in err


def test_logs_move_nothing_in_the_terminal(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    log = workspace.run_dir(FIRST) / "logs" / "Examples.log"
    log.write_bytes(b"one\ttwo\n\x1b[2J\x1b]0;title\x07\xff\rthree\n")
    shown = "one\ttwo\n" + r"\u001b[2J\u001b]0;title\u0007\xff\rthree" + "\n"
    assert sluice("logs", "digits", "Examples") == (0, shown, "")


def test_nothing_that_a_record_holds_disturbs_the_terminal(
    workspace: Workspace, sluice: Sluice
) -> None:
    """Names come from data, files and arguments: of features, of folders, of runs."""
    from runners.cli.console import make_console
    from runners.cli.render_run import print_outcome

    _fail(workspace, FIRST)
    record = RunRecord.load(workspace.run_dir(FIRST))
    evil = "x\nerror: forged\x1b[2J\x9b2J"
    row: dict[str, Any] = dict.fromkeys(("check", "slice", "limit", "baseline"), evil)
    row |= {"actual": evil, "passed": False, "why": evil, "examples": [evil]}
    record.gates = [{"gate": "model", "passed": False, "override": None, "rows": [row]}]
    record.pipeline = record.command = record.started_at = evil
    record.resume_command = evil
    record.notes, record.nodes[0].reason, record.nodes[0].id = [evil], evil, evil
    record.pushes[0].state, record.pushes[0].uri = "pushed", evil
    assert record.error is not None
    record.error.message = str(DataError(f"{evil} is bad", where=evil))
    record.error.log, record.error.log_tail = evil, [evil]
    record.save(workspace.run_dir(FIRST))
    shown = [sluice(verb, "digits") for verb in ("status", "runs")]
    print_outcome(make_console(), record, predict=evil)
    shown += [
        sluice("status"),
        sluice("validate", evil),
        sluice("logs", "digits", evil),
    ]
    shown += [sluice("status", "digits", "--run", evil), sluice(evil)]
    shown += [sluice("run", "digits", f"--{evil}"), sluice("graph", evil)]
    for code, out, err in shown:
        text = out + err
        assert r"\nerror: forged\u001b[2J" in text.replace(r"\x1b", r"\u001b"), code
        assert "\x1b" not in text and "\x9b" not in text
        assert "\nerror: forged" not in text


def test_logs_can_be_followed_to_the_end_of_the_run(
    workspace: Workspace, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = _begin(workspace, FIRST)
    log = workspace.run_dir(FIRST) / "logs" / "Trainer.log"
    log.write_text("first\n")

    shown = []

    def output(data: str) -> None:
        """Goes on with the run as soon as what it has said so far is shown."""
        shown.append(data)
        if data == "first\n":
            with open(log, "a") as file:
                file.write("half of the ")
        elif len(shown) == 2:
            with open(log, "a") as file:
                file.write("second\nthird")
        elif data == "half of the second\n":
            recorder.apply(Finished())
            recorder.end()

    monkeypatch.setattr("runners.cli.logs.say_output", output)
    with workspace.exclusive("sluice run digits"):
        sluice("logs", "digits", "Trainer", "--follow")
    assert [data for data in shown if data] == [
        "first\n",
        "half of the second\n",
        "third",
    ]


def test_resume_has_nothing_to_go_on_with(workspace: Workspace, sluice: Sluice) -> None:
    code, _, err = sluice("resume", "digits")
    assert code == 2 and "has not run yet" in err
    recorder = _begin(workspace, FIRST)
    recorder.apply(Finished())
    recorder.end()
    code, out, err = sluice("resume", "digits", "--json")
    assert code == 2 and "had nothing to do" not in err
    assert "there is no run of digits to go on with" in err
    assert json.loads(out)["exit_code"] == 2
    code, _, err = sluice("resume")
    assert code == 2 and "no pipeline's last run has failed or interrupted" in err


@pytest.mark.parametrize(
    ("path", "text", "part"),
    [
        ("schemas/digits/schema.pbtxt", "# more\n", "schema"),
        ("data/digits/eval-0", "x", "data: eval: eval-0"),
    ],
)
def test_resume_refuses_what_has_changed(
    root: Path, workspace: Workspace, sluice: Sluice, path: str, text: str, part: str
) -> None:
    _fail(workspace, FIRST)
    with open(root / path, "a") as file:
        file.write(text)
    code, _, err = sluice("resume", "digits")
    assert code == 2
    assert f"run {FIRST} cannot go on" in err and part in err
    assert "sluice run digits" in err
    assert isinstance(Journal(workspace.run_dir(FIRST)).events()[-1], RunEnded)


def test_resume_refuses_what_gc_has_dropped(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    (workspace.run_dir(FIRST) / "config.json").unlink()
    code, _, err = sluice("resume", "digits", "--run", FIRST)
    assert code == 2 and "has dropped it" in err


def test_only_the_last_run_is_resumed(workspace: Workspace, sluice: Sluice) -> None:
    """An older one would be judged against what was served when it began."""
    _fail(workspace, FIRST)
    _fail(workspace, SECOND)
    code, _, err = sluice("resume", "digits", "--run", FIRST)
    assert code == 2
    assert f"run {FIRST} cannot be resumed: {SECOND} has run since" in err
    assert "sluice run digits" in err


def test_a_refused_run_is_nothing_to_go_on_with(
    workspace: Workspace, sluice: Sluice
) -> None:
    recorder = _begin(workspace, FIRST)
    recorder.apply(Stopped(message="no node 'X'", exit_code=2))
    recorder.end()
    assert recorder.record.resume_command is None
    code, _, err = sluice("resume", "digits")
    assert code == 2 and "has not run yet" in err


def test_a_run_whose_inputs_are_not_known_is_not_resumed(
    workspace: Workspace, sluice: Sluice
) -> None:
    from runners.local.graph_file import GraphFile

    _fail(workspace, FIRST)
    run_dir = workspace.run_dir(FIRST)
    (run_dir / "inputs.json").unlink()
    GraphFile("digits", (), "").save(run_dir)
    code, _, err = sluice("resume", "digits")
    assert code == 2 and "what it was made of is not known" in err


def test_a_killed_run_of_an_earlier_version_keeps_nobody_waiting(
    workspace: Workspace, sluice: Sluice
) -> None:
    recorder = _begin(workspace, FIRST)
    recorder.apply(NodeStarted(node="Trainer", attempt=1))
    node = {
        "id": "Trainer",
        "kind": "Trainer",
        "upstream": ["Examples"],
        "contexts": [["pipeline", "digits"]],
        "gate": False,
        "resolver": False,
        "action": "run",
        "needs": [["Examples"]],
    }
    graph = {
        "pipeline": "digits",
        "nodes": [node],
        "connection": "",
        "base_run_id": None,
        "has_history": True,
    }
    run_dir = workspace.run_dir(FIRST)
    (run_dir / "graph.json").write_text(json.dumps(graph))
    assert sluice("runs", "digits")[0] == 0
    record = RunRecord.load(run_dir)
    assert record.status == "interrupted"
    assert [(node.id, node.state) for node in record.nodes][-1] == (
        "Trainer",
        "interrupted",
    )
    assert record.notes[-1] == (
        f"the record is not whole: run {FIRST} was begun by another version of Sluice"
    )


def _write_as_before_typed_events(run_dir: Path) -> None:
    """Makes the journal of a run one that Sluice wrote before events had types."""
    events: list[dict[str, Any]] = [
        {"event": "run_started", "command": "sluice run digits", "workers": 1},
        {"event": "graph", "nodes": [{"id": "Trainer", "kind": "Trainer"}]},
    ]
    lines = [json.dumps({"at": "2026-01-01T00:00:00+00:00", **e}) for e in events]
    (run_dir / "journal.jsonl").write_text("\n".join(lines) + "\n")


def test_an_untyped_journal_of_a_killed_run_keeps_nobody_waiting(
    workspace: Workspace, sluice: Sluice
) -> None:
    recorder = _begin(workspace, FIRST)
    recorder.apply(NodeStarted(node="Trainer", attempt=1))
    _write_as_before_typed_events(workspace.run_dir(FIRST))
    assert "interrupted" in sluice("runs", "digits")[1]
    record = RunRecord.load(workspace.run_dir(FIRST))
    assert (record.status, record.node("Trainer").state) == (
        "interrupted",
        "interrupted",
    )
    assert record.error is not None
    assert "written by another version of Sluice" in record.error.message


def test_a_run_with_an_untyped_journal_is_shown_but_not_resumed(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    _write_as_before_typed_events(workspace.run_dir(FIRST))
    assert "failed" in sluice("status", "digits")[1]
    code, _, err = sluice("resume", "digits")
    assert code == 2 and "written by another version of Sluice" in err
    assert "sluice run" in err and "Traceback" not in err


def test_a_run_whose_journal_lost_its_beginning_is_not_resumed(
    workspace: Workspace, sluice: Sluice
) -> None:
    _fail(workspace, FIRST)
    journal = workspace.run_dir(FIRST) / "journal.jsonl"
    journal.write_bytes(b"\0" + journal.read_bytes()[1:])
    code, _, err = sluice("resume", "digits")
    assert code == 2 and "is damaged" in err
