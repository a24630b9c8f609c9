"""``sluice logs``: choice of the run, errors, and following a log."""

from __future__ import annotations

import json

import pytest

from runners.cli.logs import find_log, follow_log
from sluice.errors import UsageError

pytestmark = pytest.mark.unit


def test_the_log_of_the_newest_run_that_has_one(written, sluice):
    log = written.fail(written.FIRST) / "logs" / "Examples.log"
    log.write_bytes(b"one\ttwo\n\x1b[2J\xff\rthree\n")
    written.write(written.SECOND)
    shown = "one\ttwo\n" + r"\u001b[2J\xff\rthree" + "\n"
    assert sluice("logs", "digits", "Examples") == (0, shown, "")
    document = json.loads(sluice("logs", "digits", "Examples", "--json")[1])
    assert document.pop("lines")[0] == "one\ttwo"
    assert document == {
        "schema_version": 1,
        "run_id": written.FIRST,
        "node": "Examples",
        "log": str(log),
    }


def test_following_yields_whole_lines_until_the_run_ends(written):
    record = written.begin()
    path = written.run_dir() / "logs" / "Trainer.log"

    def write(text):
        with open(path, "a") as file:
            file.write(text)

    write("first\n")
    with written.workspace.exclusive("sluice run digits"):
        lines = follow_log(*find_log("digits", "Trainer", follow=True))
        assert next(lines) == b"first\n"
        write("half of the ")
        assert next(lines) == b""
        write("second\nthird")
        assert next(lines) == b"half of the second\n"
        record.status = "succeeded"
        written.save(record)
        assert list(lines) == [b"third"]


def test_an_unknown_node_or_log_lists_the_known_ones(written):
    written.fail(written.FIRST)
    with pytest.raises(UsageError, match="no node 'Examplez'") as unknown:
        find_log("digits", "Examplez")
    assert "one of start, Examples, Trainer" in str(unknown.value)
    assert "did you mean 'Examples'?" in str(unknown.value)
    with pytest.raises(UsageError, match="Trainer has no log .*: not reached"):
        find_log("digits", "Trainer")
