"""A damaged metadata file is restored from its copy, or the run is rejected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice.project import own_root
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.fault


# No file may grow beyond 64 KiB, as on a disk that is nearly full.
SMALL_FILES = """
import resource, signal, sys
from pathlib import Path
from runners.metadata.metadata_file import check_metadata
from sluice.workspace import Workspace

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
check_metadata(Workspace(Path(sys.argv[1])))
"""


def _overwrite(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40_000] = b"\xff" * 40_000
    path.write_bytes(data)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _damaged(root: Path) -> list[Path]:
    return list(root.glob("metadata.db.damaged-*"))


def test_the_next_run_restores_the_copy(served: Any) -> None:
    before = served.executions()
    path = served.workspace.metadata_db
    _truncate(path)
    bad = path.read_bytes()
    outcome = served.here("run", "digits", "--json")
    assert outcome.code == 0, outcome.err
    (note,) = outcome.document["notes"]
    assert note.startswith("the metadata was damaged (")
    assert "went back to the copy of 20" in note and note in outcome.err
    (aside,) = _damaged(served.workspace.root)
    assert note.endswith(f"the damaged file is kept as {aside.name}")
    assert aside.read_bytes() == bad
    states = outcome.states
    # A resolver always looks.
    assert states.pop("LatestBlessedModel") in ("ran", "cached")
    assert set(states.values()) == {"cached"}
    after = served.executions()
    assert after.pop("LatestBlessedModel") == before.pop("LatestBlessedModel") + 1
    assert after == before
    served.assert_sound(versions=[1])


def test_without_a_copy_the_run_is_rejected_and_nothing_changes(served: Any) -> None:
    root, path = served.workspace.root, served.workspace.metadata_db
    (root / "state" / "metadata.copy.db").unlink()
    _truncate(path)
    bad, runs = path.read_bytes(), served.workspace.run_ids()
    outcome = served.here("run", "digits", "--json")
    assert outcome.code == 2
    assert "metadata is damaged, and there is no copy of it" in outcome.err
    assert f"where:    {path}" in outcome.err
    assert f"try:      mv {path} {path}.damaged, then run again" in outcome.err
    assert path.read_bytes() == bad
    assert _damaged(root) == []
    assert served.workspace.run_ids() == runs
    assert (root / "serving" / "1" / "saved_model.pb").is_file()


def test_outputs_of_an_execution_missing_in_the_copy_are_not_read(
    served: Any,
) -> None:
    """Its id is assigned again, and with it the folder that holds its shards."""
    copy = served.workspace.root / "state" / "metadata.copy.db"
    train = served.project / "data" / "digits" / "train-0.tfrecord"
    records = list(tfrecord.read(train))
    part = ("run", "digits", "--to", "TFRecordGen", "--json")
    old_copy = copy.read_bytes()
    tfrecord.write(train, records[:30])
    try:
        served.kill("TFRecordGen", "between shards")
        assert served.here(*part).code == 7
        # As if the runner had been killed too, before it copied the metadata.
        copy.write_bytes(old_copy)
        _overwrite(served.workspace.metadata_db)
        examples = served.workspace.artifacts / "TFRecordGen" / "examples"
        (left,) = examples.glob("*/Split-*/data_*-of-00003.gz")
        outcome = served.here(*part)
        assert outcome.code == 0, outcome.err
        assert [served.records_in(name) for name in ("train", "eval")] == [110, 120]
        (uri,) = served.record().node("TFRecordGen").outputs["examples"]
        assert left.parents[1] == Path(uri)
    finally:
        tfrecord.write(train, records)


def test_metadata_that_cannot_be_opened_is_not_called_damaged(served: Any) -> None:
    path = served.workspace.metadata_db
    path.rename(path.with_name("elsewhere"))
    path.mkdir()
    outcome = served.here("run", "digits")
    assert outcome.code == 2
    assert "the pipeline's metadata cannot be read" in outcome.err
    assert "found:    unable to open database file" in outcome.err
    assert path.is_dir() and _damaged(served.workspace.root) == []


def test_a_copy_that_does_not_fit_on_the_disk_replaces_nothing(served: Any) -> None:
    path = served.workspace.metadata_db
    _truncate(path)
    bad = path.read_bytes()
    command = [sys.executable, "-c", SMALL_FILES, str(served.workspace.root)]
    done = subprocess.run(command, cwd=own_root(), capture_output=True, text=True)
    assert (
        "metadata is damaged, and it could not be restored from its copy" in done.stderr
    )
    assert path.read_bytes() == bad
    assert [entry.name for entry in path.parent.glob("*metadata.db*")] == [path.name]
    assert served.here("run", "digits").code == 0
    served.assert_sound(versions=[1])
