"""An ingestion beside the import of TFX, and the node that takes its outputs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from components.tfrecord_gen.early_ingestion import ingesting, take_ingested
from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.ingestion_report import Report
from components.tfrecord_gen.input_files import SourceFile, Window
from components.tfrecord_gen.settings import Ingestion
from tests.kit.ingestion import examples, shard
from tests.kit.wait import wait_for

pytestmark = pytest.mark.unit


@pytest.fixture
def window(tmp_path: Path) -> Window:
    """A file per split, one of them cut."""
    patterns, files = {"train": "train", "eval": "eval"}, []
    data_of = {"train": shard(examples(50)), "eval": shard(examples(9))[:-5]}
    for split, data in data_of.items():
        path = tmp_path / split
        path.write_bytes(data)
        files.append(SourceFile(str(path), split, size_bytes=len(data)))
    return Window(str(tmp_path), patterns, tuple(files))


@pytest.fixture
def settings(window: Window) -> Ingestion:
    return Ingestion(base=window.base, patterns=dict(window.patterns))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the process ingests, known to a node."""
    monkeypatch.setenv("SLUICE_INGESTED", str(tmp_path / "ingested"))
    return tmp_path / "ingested"


@pytest.fixture
def take(tmp_path: Path, window: Window) -> Callable[..., Report | None]:
    """Takes what is ingested, to ``taken``."""
    target = tmp_path / "taken"

    def take(settings: Ingestion) -> Report | None:
        target.mkdir(exist_ok=True)
        splits = {name: f"{target}/{name}" for name in window.patterns}
        return take_ingested(settings, window, splits, f"{target}/quarantine")

    return take


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_node_takes_what_it_would_have_ingested(
    window, settings, folder, take, tmp_path
):
    own = tmp_path / "own"
    splits = {name: f"{own}/{name}" for name in window.patterns}
    expected = ingest(settings, window, splits, f"{own}/quarantine", workers=1)
    with ingesting(folder, settings, window):
        assert take(settings) == expected
        assert expected.quarantined == 1
        assert contents(tmp_path / "taken") == contents(own)
        assert take(settings) is None, "taken already"
    assert not folder.exists()


def test_what_is_ingested_for_other_settings_is_left(window, settings, folder, take):
    with ingesting(folder, settings, window):
        assert take(settings.model_copy(update={"max_record_bytes": 99})) is None
        assert take(settings) is not None


def test_nothing_is_taken_of_a_killed_process(window, settings, folder, take):
    path = window.files[0].path
    os.unlink(path)
    os.mkfifo(path)  # Which nobody writes: the process waits.
    with ingesting(folder, settings, window):
        pid = wait_for(lambda: process_of(folder))
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert take(settings) is None


def test_a_process_that_is_not_waited_for_is_killed(window, settings, folder):
    path = window.files[0].path
    os.unlink(path)
    os.mkfifo(path)
    with ingesting(folder, settings, window):
        wait_for(lambda: process_of(folder))
    assert process_of(folder) is None


def process_of(folder: Path) -> int | None:
    """Returns the number of the process that ingests into a folder."""
    command = ["pgrep", "-f", f"components.tfrecord_gen.early_ingestion {folder}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(found.stdout.split()[0]) if found.stdout else None
