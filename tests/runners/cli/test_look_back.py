"""Output of ``sluice status``, ``runs``, ``logs`` and ``resume``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.cli.render_run import print_outcome
from runners.cli.rich_console import make_console
from sluice.errors import DataError
from sluice.record.events import NodeStarted
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

Sluice = Callable[..., tuple[int, str, str]]


def test_status_shows_nodes_memory_and_the_resume_command(
    written: Any, sluice: Sluice
) -> None:
    run_dir = written.fail(written.FIRST)
    code, out, _ = sluice("status", "digits")
    assert code == 0
    lines: dict[str, str] = {}
    for line in filter(str.strip, out.splitlines()):
        lines.setdefault(line.split()[0], line)
    assert "failed" in lines["Examples"] and "1m01s" in lines["Examples"]
    assert "3.1 GB" in lines["Examples"] and "boom" in lines["Examples"]
    assert f"sluice resume digits --run {written.FIRST}" in lines["resume:"]
    assert "once config or code is corrected: run" in lines["resume:"]
    document = json.loads(sluice("status", "digits", "--json")[1])
    assert document == RunRecord.load(run_dir).to_dict()
    assert sluice("status", "digits", "--run", "2027")[0] == 2


def test_status_of_all_pipelines(written: Any, sluice: Sluice) -> None:
    assert "nothing has run yet" in sluice("status")[1]
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    out = sluice("status")[1]
    assert written.SECOND in out and written.FIRST not in out
    (row,) = json.loads(sluice("status", "--json")[1])
    assert row["run_id"] == written.SECOND


def test_a_record_of_an_earlier_version_is_shown(written: Any, sluice: Sluice) -> None:
    old = Path(__file__).parents[2] / "sluice/record/run_nothing_to_do.json"
    run_dir = written.workspace.run_dir("20261122T095228Z-64bf")
    run_dir.mkdir(parents=True)
    (run_dir / "run.json").write_text(old.read_text())
    for verb in ("status", "runs"):
        code, out, _ = sluice(verb, "digits")
        assert code == 0 and "nothing_to_do" not in out
    assert json.loads(sluice("status", "digits", "--json")[1])["status"] == "up_to_date"


def test_a_running_node_shows_its_progress(written: Any, sluice: Sluice) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(NodeStarted(node="Examples", attempt=1))
    epoch: dict[str, Any] = {"event": "epoch", "epoch": 3, "epochs": 8}
    epoch |= {"duration_s": 2.0, "metrics": {"val_accuracy": 0.5}}
    recorder.show_progress("Examples", epoch)
    recorder.tick()
    with written.workspace.exclusive("sluice run digits"):
        shown = sluice("status", "digits")[1]
    said = r"Examples +running +\d+\.\ds +epoch 3/8  val_accuracy 0\.5000"
    assert re.search(said, shown), shown


def test_control_sequences_in_logs_are_escaped(written: Any, sluice: Sluice) -> None:
    log = written.fail(written.FIRST) / "logs" / "Examples.log"
    log.write_bytes(b"one\ttwo\n\x1b[2J\x1b]0;title\x07\xff\rthree\n")
    shown = "one\ttwo\n" + r"\u001b[2J\u001b]0;title\u0007\xff\rthree" + "\n"
    assert sluice("logs", "digits", "Examples") == (0, shown, "")
    document = json.loads(sluice("logs", "digits", "Examples", "--json")[1])
    assert document["lines"][0] == "one\ttwo"
    code, out, _ = sluice("logs", "digits", "..", "--json")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)


def test_a_refused_resume_prints_one_json_object(written: Any, sluice: Sluice) -> None:
    code, out, err = sluice("resume", "digits", "--json")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)
    assert "has not run yet" in err


def test_control_characters_in_a_record_are_escaped(
    written: Any, sluice: Sluice
) -> None:
    """Names come from data, files and arguments: of features, of folders, of runs."""
    run_dir = written.fail(written.FIRST)
    record = RunRecord.load(run_dir)
    evil = "x\nerror: forged\x1b[2J\x9b2J"
    row: dict[str, Any] = dict.fromkeys(("check", "slice", "limit", "baseline"), evil)
    row |= {"actual": evil, "passed": False, "why": evil, "examples": [evil]}
    record.gates = [{"gate": "model", "passed": False, "override": None, "rows": [row]}]
    record.pipeline = record.command = record.started_at = evil
    record.resume_command, record.tags = evil, {evil: evil}
    record.notes, record.nodes[0].reason, record.nodes[0].id = [evil], evil, evil
    record.pushes[0].state, record.pushes[0].uri = "pushed", evil
    assert record.error is not None
    record.error.message = str(DataError(f"{evil} is bad", where=evil))
    record.error.log, record.error.log_tail = evil, [evil]
    record.save(run_dir)
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


def test_resume_warns_of_an_unreadable_record_once(
    written: Any, sluice: Sluice
) -> None:
    written.fail(written.FIRST)
    run_dir = written.fail(written.SECOND)
    (run_dir / "run.json").write_text("{")
    (run_dir / "journal.jsonl").unlink()
    code, out, err = sluice("resume", "digits", "--run", "2025")
    assert code == 2 and "there is no run '2025' of digits" in err
    assert out.count(f"warning: the record of run {written.SECOND} cannot be") == 1
