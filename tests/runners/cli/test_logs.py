"""``sluice logs``: choice of the run, and errors."""

from __future__ import annotations

import json

import pytest

from runners.cli.logs import find_log
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


def test_an_unknown_node_or_log_lists_the_known_ones(written):
    written.fail(written.FIRST)
    with pytest.raises(UsageError, match="no node 'Examplez'") as unknown:
        find_log("digits", "Examplez")
    assert "one of start, Examples, Trainer" in str(unknown.value)
    assert "did you mean 'Examples'?" in str(unknown.value)
    with pytest.raises(UsageError, match="Trainer has no log .*: not reached"):
        find_log("digits", "Trainer")
