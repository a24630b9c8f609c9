"""Data baselines: entries deleted, half-written or on a full disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

TOO_FEW = ("--set", "validate.min_examples.train=1000")
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


@pytest.fixture(scope="module")
def place(make_place: Callable[..., Any]) -> Any:
    """A pipeline whose data has been accepted."""
    place = make_place("baselines")
    assert _judge(place).code == 0
    return place


def _judge(place: Any, *arguments: str) -> Any:
    return place.here("run", "digits", "--to", "AcceptData", "--json", *arguments)


def _entry(place: Any) -> Path:
    (entry,) = (place.workspace.root / "state" / "accepted").iterdir()
    return entry


def test_an_entry_that_was_deleted_is_written_again(place: Any) -> None:
    assert _judge(place).states["AcceptData"] == "cached"
    entry = _entry(place)
    shutil.rmtree(entry)
    explained = place.here("explain", "digits", "AcceptData")
    assert "does not hold this data" in explained.out
    outcome = _judge(place)
    assert outcome.states["DataGate"] == "cached"
    assert outcome.states["AcceptData"] == "ran"
    assert (entry / RECORD_FILE).is_file()
    next(entry.glob("*.pb")).write_bytes(b"damaged")
    assert _judge(place).states["AcceptData"] == "ran"
    assert _judge(place).states["AcceptData"] == "cached"


def test_garbage_collection_leaves_the_baseline_store_alone(place: Any) -> None:
    before = sorted(path.name for path in _entry(place).iterdir())
    assert place.here("gc", "digits", "--keep", "1").code == 0
    assert sorted(path.name for path in _entry(place).iterdir()) == before


def test_a_note_if_accept_data_was_not_needed(place: Any) -> None:
    outcome = _judge(place, "--accept-data", "just in case")
    assert outcome.code == 0
    assert outcome.document["gates"][0]["override"] is None
    assert outcome.document["notes"] == [
        "--accept-data was not needed: the data passes by itself"
    ]


def test_a_note_if_accept_data_had_no_effect(place: Any) -> None:
    only = ("run", "digits", "--only", "ExampleValidator", "--json")
    outcome = place.here(*only, "--accept-data", "just in case")
    assert outcome.code == 0
    assert (
        "--accept-data had no effect: DataVerdict is not in the part asked for"
        in outcome.document["notes"]
    )
    assert not any("by hand" in note for note in outcome.document["notes"])


def test_a_note_if_a_reused_verdict_followed_another_policy(place: Any) -> None:
    outcome = place.here("run", "digits", "--only", "AcceptData", "--json", *TOO_FEW)
    assert outcome.code == 0
    (note,) = outcome.document["notes"]
    assert "reused: config: validate, by which the data was judged" in note


def _write(store: Path, fault: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WRITER, str(store), fault],
        env={**os.environ, "PYTHONPATH": str(own_root())},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("fault", ["kill", "50", "200"])
def test_a_killed_writer_leaves_no_damaged_entry(tmp_path: Path, fault: str) -> None:
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
