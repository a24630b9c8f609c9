"""``resume``: the runs that it refuses, whose records stay unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from runners.operations.resume import ResumeRequest, resume
from sluice.errors import UsageError
from sluice.record.events import Finished, RunEnded, Stopped
from sluice.record.journal import Journal
from sluice.record.run_record import REHEARSAL

pytestmark = pytest.mark.unit


def _refused(**asked: Any) -> UsageError:
    with pytest.raises(UsageError) as raised:
        resume(ResumeRequest(**{"name": "digits", **asked}))
    return raised.value


def test_without_runs_there_is_none_to_resume(written: Any) -> None:
    assert "has not run yet" in _refused().what
    assert "there is no failed or interrupted run" in _refused(name=None).what


def test_a_run_that_succeeded_is_refused(written: Any) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(Finished())
    recorder.end()
    refused = _refused()
    assert "there is no run of digits to resume" in refused.what
    assert "had nothing to do" not in refused.what
    assert "there is no failed or interrupted run" in _refused(name=None).what


@pytest.mark.parametrize(
    ("path", "text", "part"),
    [
        ("schemas/digits/schema.pbtxt", "# more\n", "schema"),
        ("data/digits/eval-0", "x", "data: eval: eval-0"),
    ],
)
def test_changed_inputs_are_refused(
    written: Any, path: str, text: str, part: str
) -> None:
    run_dir = written.fail(written.FIRST)
    with open(written.root / path, "a") as file:
        file.write(text)
    refused = _refused()
    assert f"run {written.FIRST} cannot be resumed" in refused.what
    assert part in str(refused) and "sluice run digits" in (refused.hint or "")
    assert isinstance(Journal(run_dir).events()[-1], RunEnded)


def test_a_run_without_its_config_is_refused(written: Any) -> None:
    (written.fail(written.FIRST) / "config.json").unlink()
    assert "has deleted its artifacts" in _refused(run_id=written.FIRST).what


def test_an_older_run_is_refused(written: Any) -> None:
    """Its gates would compare with the model that was served when it began."""
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    refused = _refused(run_id=written.FIRST)
    said = f"run {written.FIRST} cannot be resumed: {written.SECOND} has run since"
    assert said in refused.what
    assert "sluice run digits" in (refused.hint or "")


def test_a_rehearsal_is_started_anew(written: Any) -> None:
    """Found: the hint named ``sluice run``."""
    tags = {REHEARSAL: "round 1"}
    recorder = written.begin(written.FIRST, resume_command=None, tags=tags)
    recorder.apply(Stopped(message="the disk is full", exit_code=8))
    recorder.end()
    refused = _refused(run_id=written.FIRST)
    assert "its engine cannot resume runs" in refused.what
    assert "sluice rehearse digits" in (refused.hint or "")


def test_a_run_with_a_usage_error_is_not_resumable(written: Any) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(Stopped(message="no node 'X'", exit_code=2))
    recorder.end()
    assert recorder.record.resume_command is None
    assert "has not run yet" in _refused().what


def test_a_run_without_stored_inputs_is_refused(written: Any) -> None:
    from runners.local.graph_file import GraphFile

    run_dir = written.fail(written.FIRST)
    (run_dir / "inputs.json").unlink()
    GraphFile("digits", (), "").save(run_dir)
    assert "its inputs are not known" in _refused().what


def test_a_journal_of_another_version_is_refused(written: Any) -> None:
    written.write_untyped_journal(written.fail(written.FIRST))
    refused = _refused()
    assert "written by another version of Sluice" in str(refused)
    assert "sluice run" in (refused.hint or "")


def test_a_journal_without_its_first_event_is_refused(written: Any) -> None:
    journal = written.fail(written.FIRST) / "journal.jsonl"
    journal.write_bytes(b"\0" + journal.read_bytes()[1:])
    assert "is damaged" in str(_refused())
