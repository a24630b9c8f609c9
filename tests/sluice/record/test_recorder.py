"""The recorder: ``run.json`` follows the journal, also of several writers."""

from __future__ import annotations

import json
import math
import shutil
import threading
from pathlib import Path

import pytest

from sluice.errors import ExitCode, NodeError, WorkspaceError
from sluice.record import recorder as recorder_module
from sluice.record.events import (
    Event,
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFinished,
    NodeStarted,
    Note,
    RunStarted,
)
from sluice.record.fold import Fold, fold
from sluice.record.journal import Journal, JournalError
from sluice.record.recorder import Recorder
from sluice.record.run_record import DocumentRecord, RunRecord

pytestmark = pytest.mark.unit

GRAPH = GraphCompiled(nodes=(GraphNode("Trainer", "Trainer", ()),))
STARTED = NodeStarted(node="Trainer", attempt=1)


@pytest.fixture
def recorder(tmp_path: Path, run_started: RunStarted) -> Recorder:
    run_dir = tmp_path / run_started.run_id
    (run_dir / "logs").mkdir(parents=True)
    recorder = Recorder(run_dir)
    for event in (run_started, GRAPH, STARTED):
        recorder.apply(event)
    return recorder


@pytest.fixture
def run_dir(tmp_path: Path, run_started: RunStarted) -> Path:
    return tmp_path / run_started.run_id


def test_the_file_is_the_record_after_every_event(
    recorder: Recorder, run_dir: Path
) -> None:
    for event in (NodeFinished(node="Trainer", state="ran"), Finished()):
        recorder.apply(event)
        assert RunRecord.load(run_dir) == recorder.record
        assert fold(Journal(run_dir).events()) == recorder.record
    recorder.end()
    assert RunRecord.load(run_dir).status == "succeeded"


def test_another_process_continues_from_the_journal(
    recorder: Recorder, run_dir: Path
) -> None:
    other = Recorder(run_dir)
    assert other.record == recorder.record
    other.apply(Note(text="from there"))
    recorder.apply(Note(text="from here"))
    assert recorder.record.notes == ["from there", "from here"]
    assert RunRecord.load(run_dir) == recorder.record


def test_many_writers_lose_nothing(recorder: Recorder, run_dir: Path) -> None:
    def write(name: str) -> None:
        own = Recorder(run_dir)
        for number in range(20):
            own.apply(Note(text=f"{name} {number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notes = RunRecord.load(run_dir).notes
    assert len(notes) == 80
    assert [note for note in notes if note.startswith("a")] == [
        f"a {number}" for number in range(20)
    ]


def test_a_running_node_shows_its_epoch(
    recorder: Recorder, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "_PROGRESS_EVERY_S", 600.0)
    metrics = {"loss": math.nan, "val_accuracy": 0.5}
    facts = {"event": "epoch", "epoch": 3, "epochs": 8, "duration_s": 1.5}
    recorder.show_progress("Trainer", {**facts, "metrics": metrics})
    recorder.tick()
    kept = RunRecord.load(run_dir).node("Trainer").progress
    assert kept == {**facts, "metrics": {"loss": "NaN", "val_accuracy": 0.5}}

    recorder.show_progress("Trainer", {**facts, "epoch": 4, "metrics": {}})
    recorder.tick()
    kept = RunRecord.load(run_dir).node("Trainer").progress
    assert kept and kept["epoch"] == 3  # Written every few seconds only.
    monkeypatch.setattr(recorder_module, "_PROGRESS_EVERY_S", 0.0)
    recorder.tick()
    kept = RunRecord.load(run_dir).node("Trainer").progress
    assert kept and kept["epoch"] == 4  # But then all that was said.

    # It is no event, and gone with the end of the node.
    assert fold(Journal(run_dir).events()).node("Trainer").progress is None
    recorder.apply(NodeFinished(node="Trainer", state="ran"))
    assert RunRecord.load(run_dir).node("Trainer").progress is None


def test_the_end_of_a_run_names_the_logs_that_there_are(
    recorder: Recorder, run_dir: Path
) -> None:
    (run_dir / "logs" / "Trainer.log").touch()
    recorder.show_progress("Trainer", {"event": "epoch", "epoch": 1})
    recorder.end(reason="was killed by signal 9")
    error = recorder.record.error
    assert error is not None
    assert error.log == str(run_dir / "logs" / "Trainer.log")
    assert recorder.record.node("Trainer").progress is None


def test_an_interrupt_while_it_records_loses_nothing(
    recorder: Recorder, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Fold, event: Event) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Fold, "apply", interrupted)
        recorder.apply(Note(text="in between"))
    recorder.end(ExitCode.INTERRUPTED, "interrupted by SIGINT")
    assert recorder.record.notes == ["in between"]
    assert recorder.record.node("Trainer").state == "interrupted"
    assert RunRecord.load(run_dir) == recorder.record


def test_stop_ends_a_run_with_an_error(recorder: Recorder) -> None:
    recorder.stop(NodeError("the zygote is gone"))
    record = recorder.record
    assert (record.status, record.exit_code) == ("failed", ExitCode.NODE)
    assert record.error is not None
    assert (record.error.message, record.error.log) == ("the zygote is gone", None)


def test_an_unchanged_run_has_the_documents_of_the_last(
    recorder: Recorder, tmp_path: Path, run_started: RunStarted
) -> None:
    last = recorder.record
    before = tmp_path / last.run_id / "record"
    before.mkdir()
    (before / "Trainer.epochs.json").write_text("{}")
    document = DocumentRecord(
        "epochs", "Trainer", "record/Trainer.epochs.json", "sha256"
    )
    recorder.apply(
        NodeFinished(node="Trainer", state="ran", documents=(document,)),
    )
    run_dir = tmp_path / "later"
    run_dir.mkdir()
    later = Recorder(run_dir)
    later.apply(run_started)
    later.end_unchanged(last)
    assert later.record.documents == [document]
    assert (run_dir / "record" / "Trainer.epochs.json").read_text() == "{}"
    assert RunRecord.load(run_dir) == fold(Journal(run_dir).events())


def test_a_run_whose_folder_was_deleted_still_ends(
    recorder: Recorder, run_dir: Path
) -> None:
    shutil.rmtree(run_dir)
    (run_dir / "logs").mkdir(parents=True)  # By a node that still ran.
    recorder.stop(WorkspaceError("the workspace was deleted during the run"))
    assert recorder.run_started.run_id == run_dir.name
    assert (recorder.record.status, recorder.record.exit_code) == ("failed", 2)
    assert RunRecord.load(run_dir) == recorder.record


def test_a_run_killed_after_its_last_event_has_ended(
    recorder: Recorder, run_dir: Path
) -> None:
    recorder.end(ExitCode.INTERRUPTED, "interrupted by SIGINT")
    record = json.loads((run_dir / "run.json").read_text())
    (run_dir / "run.json").write_text(json.dumps({**record, "status": "running"}))
    Recorder(run_dir).end_killed("was killed")
    assert RunRecord.load(run_dir) == recorder.record


def test_a_journal_without_run_started_is_refused(
    recorder: Recorder, run_dir: Path
) -> None:
    journal = run_dir / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0][:9] + b"\n", *lines[1:]]))
    with pytest.raises(JournalError, match="journal of run .* is damaged"):
        Recorder(run_dir)
