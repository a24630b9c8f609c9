"""The record of a run in a service, from the state of its job."""

import pytest

from runners.cloud.service_run import failure_in_log, record_of
from sluice.errors import ExitCode
from sluice.record.parts import PushRecord
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from tests.runners.cloud.small_job import EXECUTORS, small_job

pytestmark = pytest.mark.unit


def at(second):
    return f"2026-01-01T00:00:{second:02}Z"


def task(state, start=0, **values):
    """Returns a task in the service's form, which takes five seconds."""
    times = {"startTime": at(start), "endTime": at(start + 5)}
    return {"state": state, **times, **values}


def job(state, error=None, **tasks):
    """Returns a job in the service's form, with these tasks."""
    details = [{"taskName": name, **detail} for name, detail in tasks.items()]
    return {
        **small_job(),
        "name": "projects/p/locations/r/pipelineJobs/digits-1",
        "state": f"PIPELINE_STATE_{state}",
        "endTime": at(40),
        "jobDetail": {"taskDetails": details},
        "error": {"message": error} if error else {},
    }


def refreshed(answer, record=None, log=()):
    """Returns the record of a run, after the service has answered."""
    record = record or RunRecord("r-1", "digits", pushes=[PushRecord("gs://b/serving")])
    record_of(record, answer, lambda task: log)
    return record


def states(record):
    return [node.state for node in record.nodes]


def artifact(title, uri, **metadata):
    item = {"name": "a/1", "schemaTitle": title, "uri": str(uri), "metadata": metadata}
    return {"out": {"artifacts": [item]}}


@pytest.fixture
def verdict(tmp_path):
    """Returns a function that makes the outputs of DataVerdict."""

    def make(passed):
        row = Check(check="drift", result="pass" if passed else "FAIL", why="why")
        Verdict("data", (row,)).save(str(tmp_path))
        return artifact("components.DataVerdict", tmp_path)

    return make


def test_a_run_that_succeeds_whenever_it_is_asked_for(verdict):
    first = task("SUCCEEDED", outputs=verdict(True))
    gate = task("RUNNING", 6, endTime=at(6))
    record = refreshed(job("RUNNING", DataVerdict=first, DataGate=gate))
    assert states(record) == ["ran", "running", "not_reached", "not_reached"]
    assert record.node("DataVerdict").duration_s == 5
    assert record.node("DataGate").started_at == "2026-01-01T00:00:06+00:00"
    pushed = artifact(
        "tfx.PushedModel",
        "gs://b/p",
        state="pushed",
        pushed_version="7",
        pushed_destination="gs://b/serving/7",
    )
    ended = job(
        "SUCCEEDED",
        DataVerdict=first,
        DataGate=task("SUCCEEDED", 6),
        Trainer=task("SKIPPED", 12),
        Pusher=task("SUCCEEDED", 12, outputs=pushed),
        Report=task("SUCCEEDED", 20),
    )
    for one in (refreshed(ended, record), refreshed(ended)):
        assert (one.status, one.exit_code) == ("succeeded", 0)
        assert one.ended_at == "2026-01-01T00:00:40+00:00"
        assert states(one) == ["ran", "ran", "cached", "ran"]
        assert [verdict.gate for verdict in one.gates] == ["data"]
        assert (one.pushes[0].version, one.pushes[0].destination) == (
            7,
            "gs://b/serving",
        )


CASES = {
    "a gate blocks as on a local run": (
        False,
        job(
            "FAILED",
            "some tasks failed",
            DataGate=task("FAILED", 6, error={"message": "exited with 1"}),
            Trainer=task("NOT_TRIGGERED", 12),
        ),
        ("blocked", 3),
        ["ran", "failed", "blocked", "blocked"],
        "DataGate has stopped the run: the data gate has not passed",
    ),
    "a gate whose container fails": (
        True,
        job("FAILED", DataGate=task("FAILED", 6, error={"message": "no such image"})),
        ("failed", 7),
        ["ran", "failed", "not_reached", "not_reached"],
        "DataGate failed: no such image",
    ),
    "cancelled": (
        True,
        job("CANCELLED", DataGate=task("CANCELLED", 6)),
        ("interrupted", 130),
        ["ran", "interrupted", "not_reached", "not_reached"],
        None,
    ),
    "a failure outside of the tasks": (
        True,
        job("FAILED", "no such service account"),
        ("failed", 8),
        ["ran", "not_reached", "not_reached", "not_reached"],
        "the job failed: no such service account",
    ),
    "nothing new": (
        True,
        job("SUCCEEDED", DataGate=task("NOT_TRIGGERED"), Trainer=task("NOT_TRIGGERED")),
        ("succeeded", 0),
        ["ran", "skipped", "skipped", "skipped"],
        None,
    ),
}


@pytest.mark.parametrize(
    ("passed", "answer", "result", "nodes", "error"), CASES.values(), ids=CASES
)
def test_how_a_run_ends(verdict, passed, answer, result, nodes, error):
    first = {"taskName": "DataVerdict", **task("SUCCEEDED", outputs=verdict(passed))}
    details = [first, *answer["jobDetail"]["taskDetails"]]
    record = refreshed({**answer, "jobDetail": {"taskDetails": details}})
    assert (record.status, record.exit_code) == result
    assert states(record) == nodes
    assert (record.error and record.error.message) == error


@pytest.mark.parametrize("new_data", [0.0, 1.0])
def test_a_run_without_new_data_says_so(new_data):
    """Found: it ended as a success with skipped nodes, and no word about the data."""
    outputs = artifact("tfx.Examples", "gs://b/e", new_data=new_data)
    record = refreshed(job("RUNNING", DataVerdict=task("SUCCEEDED", outputs=outputs)))
    note = "no new data since the last complete run: nothing is trained"
    assert (note in record.notes) == (new_data == 0)


TRACEBACK = "Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("lines", "message", "code", "gate"),
    [
        (
            [
                TRACEBACK,
                "sluice.errors.GateError: the data has drifted",
                "  where:    fare",
                "",
                "The above exception was the direct cause",
                TRACEBACK,
                "RuntimeError: the executor failed",
            ],
            "the data has drifted\n  where:    fare",
            ExitCode.DATA,
            True,
        ),
        (
            ["RuntimeError: sluice.errors.DataError: bad [while running 'Read']"],
            "bad",
            ExitCode.DATA,
            False,
        ),
        (
            [TRACEBACK, "  File x", "ValueError: invalid literal"],
            "Task failed: ValueError: invalid literal",
            ExitCode.NODE,
            False,
        ),
        (["Killed"], "Task failed", ExitCode.NODE, False),
    ],
    ids=["our own", "in Beam", "another", "without a traceback"],
)
def test_the_error_in_a_log(lines, message, code, gate):
    failure = failure_in_log("Task", lines)
    assert (failure.message, failure.exit_code, failure.gate) == (message, code, gate)
    assert failure.log_tail == (lines if code == ExitCode.NODE else [])


def test_a_failed_exit_handler_is_a_note():
    tasks = {name: task("SUCCEEDED") for name in EXECUTORS}
    tasks["Report"] = task("FAILED", 20, error={"message": "exited with 1"})
    record = refreshed(job("FAILED", "some tasks failed", **tasks))
    assert record.status == "succeeded"
    assert record.notes == ["Report, which writes the report, failed"]
