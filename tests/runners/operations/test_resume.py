"""``resume``: the runs that it refuses, whose records stay unchanged."""

import shutil

import pytest

from runners.operations.find_run import last_real_run, resume_command
from runners.operations.resume import resume
from sluice.errors import UsageError
from sluice.record.run_record import REHEARSAL, RunOptions, RunRecord

pytestmark = pytest.mark.unit


def refused(name="digits", **asked):
    with pytest.raises(UsageError) as raised:
        resume(name, **asked)
    return raised.value


def test_without_runs_there_is_none_to_resume(written):
    assert "has not run yet" in refused().what
    assert "there is no failed or interrupted run" in refused(name=None).what
    shutil.rmtree(written.workspace.root, ignore_errors=True)
    assert "has not run yet" in refused().what


def test_a_run_that_succeeded_is_refused(written):
    written.write()
    assert "cannot be resumed: its status is succeeded" in refused().what
    assert "there is no failed or interrupted run" in refused(name=None).what


def test_an_empty_id_is_no_run(written):
    """Found: it took the latest run."""
    written.fail()
    assert "there is no run ''" in refused(run_id="").what


@pytest.mark.parametrize(
    ("path", "text", "part"),
    [
        ("schemas/digits/schema.pbtxt", "# more\n", "schema"),
        ("data/digits/eval-0", "x", "data: eval: eval-0"),
    ],
)
def test_changed_inputs_are_refused(written, path, text, part):
    run_dir = written.fail(written.FIRST)
    record = RunRecord.load(run_dir)
    with open(written.root / path, "a") as file:
        file.write(text)
    error = refused()
    assert f"run {written.FIRST} cannot be resumed" in error.what
    assert part in str(error) and "sluice run digits" in (error.hint or "")
    assert RunRecord.load(run_dir) == record


def test_a_run_without_its_config_is_refused(written):
    (written.fail(written.FIRST) / "config.json").unlink()
    assert "has deleted its artifacts" in refused(run_id=written.FIRST).what


def test_an_older_run_is_refused(written):
    """Its gates would compare with the model that was served when it began."""
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    error = refused(run_id=written.FIRST)
    said = f"run {written.FIRST} cannot be resumed: {written.SECOND} has run since"
    assert said in error.what
    assert "sluice run digits" in (error.hint or "")


def test_a_dry_run_is_neither_resumed_nor_in_the_way(written):
    written.fail(written.FIRST)
    options = RunOptions(dry_run=True, to_nodes=["RetrainGate"])
    dry = written.write(written.SECOND, options=options, status="failed", exit_code=7)
    assert resume_command(dry) is None
    last = last_real_run(written.workspace)
    assert last is not None and last.run_id == written.FIRST
    error = refused(run_id=written.SECOND)
    assert "sluice retrain digits" in (error.hint or "")


def test_a_rehearsal_is_started_anew(written):
    written.write(status="failed", exit_code=8, tags={REHEARSAL: ""})
    error = refused(run_id=written.FIRST)
    assert "sluice rehearse digits" in (error.hint or "")
