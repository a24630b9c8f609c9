"""``sluice status``: choice of the run, damaged records, killed runs, the screen."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from runners.operations.find_run import find_run
from sluice.errors import DataError, WorkspaceError
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit


def test_the_screen_of_a_failed_run(written, sluice):
    run_dir = written.fail(written.FIRST)
    code, out, _ = sluice("status", "digits")
    assert code == 0
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == f"digits  run {written.FIRST}"
    assert lines[1] == "status    failed"
    nodes = lines[lines.index("") + 1 :]
    assert nodes[0].split() == "node state time peak memory why".split()
    assert (
        nodes[1].split()
        == "Examples failed 1 min 01 s 3.1 GB Examples failed: boom".split()
    )
    assert nodes[2].split() == ["Trainer", "-"]
    assert lines[-4:] == [
        "Examples failed: boom",
        "  | two",
        f"  log:      {run_dir}/logs/Examples.log",
        f"resume:  sluice resume digits --run {written.FIRST}   (finished nodes are "
        "kept)",
    ]
    document = json.loads(sluice("status", "digits", "--json")[1])
    assert document == RunRecord.load(run_dir).to_dict()


def test_the_screen_of_all_pipelines(written, sluice):
    assert sluice("status")[1] == "nothing has run yet; try: sluice run NAME\n"
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    assert [line.split() for line in sluice("status")[1].splitlines()] == [
        "pipeline last run status served why".split(),
        f"digits {written.SECOND} failed Examples failed: boom".split(),
    ]
    (row,) = json.loads(sluice("status", "--json")[1])
    assert row["run_id"] == written.SECOND


def test_a_running_node_shows_its_progress(written, sluice):
    record = written.begin(running="Examples")
    epoch = {"event": "epoch", "epoch": 3, "epochs": 8, "duration_s": 2.0}
    record.node("Examples").progress = {**epoch, "metrics": {"val_accuracy": 0.5}}
    written.save(record)
    with written.workspace.exclusive("sluice run digits"):
        shown = sluice("status", "digits")[1]
    said = r"Examples +running +\S.* +epoch 3/8  val_accuracy 0\.5000"
    assert re.search(said, shown), shown


def test_a_damaged_record_is_skipped_with_a_warning(written, sluice):
    written.fail(written.FIRST)
    path = written.fail(written.SECOND) / "run.json"
    path.write_bytes(b"\xff\x00")
    code, out, err = sluice("status", "digits")
    assert code == 0 and written.FIRST in out
    assert err.count(f"warning: the record of run {written.SECOND} cannot be read") == 1
    with pytest.raises(WorkspaceError, match="cannot be read"):
        find_run("digits", written.SECOND)
    assert path.read_bytes() == b"\xff\x00"


def test_a_killed_run_is_interrupted_and_nothing_is_written(written):
    written.begin(running="Examples")
    with written.workspace.exclusive("sluice run digits"):
        assert find_run("digits").record.status == "running"
    files = {path: path.stat().st_mtime_ns for path in written.root.rglob("*")}
    record = find_run("digits").record
    assert record.status == "interrupted" and record.exit_code is None
    assert record.node("Examples").state == "interrupted"
    assert record.error and record.error.message == "the run was killed"
    assert record.resume_command == f"sluice resume digits --run {written.FIRST}"
    assert {path: path.stat().st_mtime_ns for path in written.root.rglob("*")} == files


def test_control_characters_in_a_record_are_escaped(written, sluice):
    """Names come from data, files and arguments: of features, of folders, of runs."""
    run_dir = written.fail(written.FIRST)
    record = RunRecord.load(run_dir)
    evil = "x[red]\nerror: forged\x1b[2J\x9b2J"
    texts: Any = dict.fromkeys(("slice", "limit", "baseline", "actual", "why"), evil)
    row = Check(check=evil, result="FAIL", examples=(evil,), **texts)
    record.gates = [Verdict("model", (row,))]
    record.pipeline = record.command = record.started_at = evil
    record.resume_command, record.tags = evil, {evil: evil}
    record.notes, record.nodes[0].reason, record.nodes[0].id = [evil], evil, evil
    record.pushes[0].state, record.pushes[0].uri = "pushed", evil
    assert record.error
    record.error.message = str(DataError(f"{evil} is bad", where=evil))
    record.error.log, record.error.log_tail = evil, [evil]
    record.save(run_dir)
    (run_dir / "logs" / "Examples.log").write_text(f"{evil}\ttabs\n")
    for arguments in (
        ["status", "digits"],
        ["status"],
        ["runs", "digits"],
        ["logs", "digits", evil],
        ["validate", evil],
        [evil],
    ):
        _, out, err = sluice(*arguments)
        text = out + err
        unwrapped = "".join(text.split())
        assert r"\nerror:forged\u001b[2J" in unwrapped.replace(r"\x1b", r"\u001b")
        assert "\x1b" not in text and "\x9b" not in text
        assert "\nerror: forged" not in text and "x[red]" in text
