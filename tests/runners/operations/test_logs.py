"""``logs``: choice of the run, errors, and following a log."""

from __future__ import annotations

from typing import Any

import pytest

from runners.operations.logs import LogsRequest, logs
from sluice.errors import UsageError
from sluice.record.events import Finished

pytestmark = pytest.mark.unit


def test_the_log_of_the_newest_run_that_has_one(written: Any) -> None:
    written.fail(written.FIRST)
    recorder = written.begin(written.SECOND)
    recorder.apply(Finished())
    recorder.end()
    log = logs(LogsRequest(name="digits", node="Examples"))
    assert b"".join(log.read()) == b"one\ntwo\n"
    assert log.to_dict() == {
        "schema_version": 1,
        "run_id": written.FIRST,
        "node": "Examples",
        "log": str(written.workspace.run_dir(written.FIRST) / "logs/Examples.log"),
        "lines": ["one", "two"],
    }


def test_an_unknown_node_or_log_lists_the_known_ones(written: Any) -> None:
    written.fail(written.FIRST)
    with pytest.raises(UsageError, match="no node 'Examplez'") as unknown:
        logs(LogsRequest(name="digits", node="Examplez"))
    assert "one of start, Examples, Trainer" in str(unknown.value)
    assert "did you mean 'Examples'?" in str(unknown.value)
    with pytest.raises(UsageError, match="Trainer has no log .*: not reached"):
        logs(LogsRequest(name="digits", node="Trainer"))


@pytest.mark.parametrize("node", ["../../../secret", "{root}/secret", "..", "."])
def test_only_files_in_the_log_folder_are_read(written: Any, node: str) -> None:
    written.fail(written.FIRST)
    for folder in (written.root, written.workspace.root):
        (folder / "secret.log").write_text("a secret")
    with pytest.raises(UsageError, match="is a path|no node"):
        logs(LogsRequest(name="digits", node=node.format(root=written.root)))


def test_following_yields_whole_lines_until_the_run_ends(written: Any) -> None:
    recorder = written.begin(written.FIRST)
    path = written.workspace.run_dir(written.FIRST) / "logs" / "Trainer.log"

    def write(text: str) -> None:
        with open(path, "a") as file:
            file.write(text)

    write("first\n")
    with written.workspace.exclusive("sluice run digits"):
        log = logs(LogsRequest(name="digits", node="Trainer", follow=True))
        lines = log.follow()
        assert next(lines) == b"first\n"
        write("half of the ")
        assert next(lines) == b""
        write("second\nthird")
        assert next(lines) == b"half of the second\n"
        recorder.apply(Finished())
        recorder.end()
        assert list(lines) == [b"third"]
