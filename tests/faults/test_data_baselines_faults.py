"""Data baselines: entries deleted, half-written or on a full disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from components.accept_data.data_baselines import (
    RECORD_FILE,
    Identity,
    SplitStatistics,
    find_data_baseline,
    write_entry,
)
from components.accept_data.entry import Entry
from sluice.project import own_root

pytestmark = pytest.mark.fault

WRITER = """
import os, resource, signal, sys
from components.accept_data.data_baselines import SplitStatistics, write_entry
from components.accept_data.entry import Entry
from sluice.storage import atomic

store, fault = sys.argv[1:]
if fault == "kill":
    # The last step of writing a new record.
    def link(source, target):
        assert str(target).endswith("record.json")
        os.kill(os.getpid(), signal.SIGKILL)
    os.link = link
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault), int(fault)))
write_entry(
    store,
    Entry("2", "second", "2026-11-21T15:02:00+00:00", "run", (), {}),
    {"train": SplitStatistics(5, b"x" * 100)},
)
"""


def _write(store: Path, fault: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WRITER, str(store), fault],
        env={**os.environ, "PYTHONPATH": str(own_root())},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("fault", ["kill", "50", "200"])
def test_a_killed_writer_leaves_no_damaged_entry(tmp_path, fault):
    """Killed before the record's rename; no room for the statistics, or the record."""
    first, second = (
        Entry(str(number), name, "2026-11-21T15:01:00+00:00", "run", (), {})
        for number, name in enumerate(("first", "second"), start=1)
    )
    good = {"train": SplitStatistics(5, b"first")}
    write_entry(str(tmp_path), first, good)
    writer = _write(tmp_path, fault)
    if fault == "kill":
        assert writer.returncode == -signal.SIGKILL
    else:
        assert "File too large" in writer.stderr
    found = find_data_baseline(str(tmp_path), Identity("3", "third"))
    # Without a record there is no entry, and nothing to warn of.
    assert (Path(found.record).parent.name, found.damaged) == ("1", ())
    write_entry(str(tmp_path), second, good)
    found = find_data_baseline(str(tmp_path), Identity("3", "third"))
    assert Path(found.record).parent.name == "2" and found.damaged == ()
    assert json.loads(Path(found.record).read_text())["fingerprint"] == "second"


def test_an_entry_that_was_deleted_is_written_again(place):
    def judge(*arguments):
        run = ("run", "clicks", "--to", "AcceptData", "--json", *arguments)
        outcome = place.sluice(*run)
        assert outcome.code == 0, outcome.err
        return outcome

    judge()
    (entry,) = (place.workspace.root / "state" / "accepted").iterdir()
    shutil.rmtree(entry)
    assert place.sluice("gc", "clicks", "--keep", "1").code == 0
    outcome = judge("--accept-data", "just in case")
    assert outcome.document["gates"][0]["override"] is None
    assert outcome.nodes["AcceptData"]["state"] == "ran"
    assert (entry / RECORD_FILE).is_file()
    states = {name: node["state"] for name, node in judge().nodes.items()}
    assert (states["DataGate"], states["AcceptData"]) == ("cached", "cached")
