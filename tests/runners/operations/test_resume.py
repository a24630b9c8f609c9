"""Which runs can be resumed; what is refused leaves no trace in the record."""

from __future__ import annotations

from typing import Any

import pytest

from runners.operations.resume import ResumeRequest, resume
from sluice.errors import UsageError
from sluice.record.events import Finished, RunEnded, Stopped
from sluice.record.journal import Journal

pytestmark = pytest.mark.unit


def _refused(**asked: Any) -> UsageError:
    with pytest.raises(UsageError) as raised:
        resume(ResumeRequest(**{"name": "digits", **asked}))
    return raised.value


def test_nothing_has_run(written: Any) -> None:
    assert "has not run yet" in _refused().what
    assert "there is no failed or interrupted run" in _refused(name=None).what


def test_the_last_run_has_ended_well(written: Any) -> None:
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
def test_what_it_is_made_of_has_changed(
    written: Any, path: str, text: str, part: str
) -> None:
    run_dir = written.fail(written.FIRST)
    with open(written.root / path, "a") as file:
        file.write(text)
    refused = _refused()
    assert f"run {written.FIRST} cannot be resumed" in refused.what
    assert part in str(refused) and "sluice run digits" in (refused.hint or "")
    assert isinstance(Journal(run_dir).events()[-1], RunEnded)


def test_gc_has_dropped_it(written: Any) -> None:
    (written.fail(written.FIRST) / "config.json").unlink()
    assert "has deleted its artifacts" in _refused(run_id=written.FIRST).what


def test_another_has_run_since(written: Any) -> None:
    """An older one would be judged against what was served when it began."""
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    refused = _refused(run_id=written.FIRST)
    said = f"run {written.FIRST} cannot be resumed: {written.SECOND} has run since"
    assert said in refused.what
    assert "sluice run digits" in (refused.hint or "")


def test_a_refused_run_is_nothing_to_go_on_with(written: Any) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(Stopped(message="no node 'X'", exit_code=2))
    recorder.end()
    assert recorder.record.resume_command is None
    assert "has not run yet" in _refused().what


def test_its_inputs_are_not_known(written: Any) -> None:
    from runners.local.graph_file import GraphFile

    run_dir = written.fail(written.FIRST)
    (run_dir / "inputs.json").unlink()
    GraphFile("digits", (), "").save(run_dir)
    assert "its inputs are not known" in _refused().what


def test_its_journal_is_of_another_version(written: Any) -> None:
    written.write_untyped_journal(written.fail(written.FIRST))
    refused = _refused()
    assert "written by another version of Sluice" in str(refused)
    assert "sluice run" in (refused.hint or "")


def test_its_journal_has_lost_its_beginning(written: Any) -> None:
    journal = written.fail(written.FIRST) / "journal.jsonl"
    journal.write_bytes(b"\0" + journal.read_bytes()[1:])
    assert "is damaged" in str(_refused())
