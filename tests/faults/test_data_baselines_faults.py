"""Data baselines: entries deleted, half-written or on a full disk."""

from __future__ import annotations

import shutil

import pytest

from components.data_baselines import RECORD_FILE

pytestmark = [pytest.mark.fault, pytest.mark.acceptance]


def test_an_entry_that_was_deleted_is_written_again(place):
    def judge(*arguments):
        run = ("run", "clicks", "--to", "AcceptData", "--json", *arguments)
        outcome = place.sluice(*run)
        assert outcome.code == 0, outcome.err
        return outcome

    judge()
    store = place.workspace.root / "state" / "accepted"
    shutil.rmtree(store)
    assert place.sluice("gc", "clicks", "--keep", "1").code == 0
    outcome = judge("--accept-data", "just in case")
    assert outcome.document["gates"][0]["override"] is None
    assert outcome.nodes["AcceptData"]["state"] == "ran"
    assert len([*store.glob(f"*/{RECORD_FILE}")]) == 1
    states = {name: node["state"] for name, node in judge().nodes.items()}
    assert (states["DataGate"], states["AcceptData"]) == ("cached", "cached")
