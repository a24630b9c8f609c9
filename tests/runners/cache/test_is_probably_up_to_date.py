"""The quick check whether a run is probably up to date."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.cache.up_to_date import is_probably_up_to_date
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace

pytestmark = pytest.mark.unit

COMMAND = "sluice run trips"
RUN = "20260101T000000Z-aaaa"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose last run was complete, seconds after its files were written."""
    hour_ago = time.time() - 3600
    for name in ("configs/trips.yaml", "data/train-0", "model.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    for path in (*tmp_path.rglob("*"), tmp_path):
        os.utime(path, (hour_ago, hour_ago))
    workspace = _workspace(tmp_path)
    workspace.prepare()
    for memory, name in (
        (workspace.digests_file, "data/train-0"),
        (workspace.sources_file, "model.py"),
    ):
        digests = FileDigests(memory)
        digests.of(tmp_path / name)
        digests.save()
    run_dir = workspace.run_dir(RUN)
    run_dir.mkdir()
    (run_dir / "run.json").write_text(json.dumps({"command": COMMAND}))
    workspace.complete_file.write_text(json.dumps({"run_id": RUN}))
    minute_ago = time.time() - 60
    os.utime(workspace.complete_file, (minute_ago, minute_ago))
    return tmp_path


def _workspace(project: Path) -> Workspace:
    return Workspace(project / "workspace" / "trips")


def _guess(project: Path, command: str = COMMAND) -> bool:
    config = project / "configs" / "trips.yaml"
    return is_probably_up_to_date(_workspace(project), config, command)


def test_the_same_command_again(project: Path) -> None:
    assert _guess(project)
    assert not _guess(project, "sluice run trips --no-cache")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "configs" / "trips.yaml").write_text("other"),
        lambda root: (root / "data" / "train-0").write_text("other"),
        lambda root: (root / "data" / "train-1").write_text("new"),
        lambda root: (root / "data" / "train-0").unlink(),
        lambda root: (root / "model.py").write_text("other"),
        lambda root: _workspace(root).complete_file.unlink(),
        lambda root: _workspace(root).complete_file.write_text("{"),
        lambda root: _workspace(root).sources_file.unlink(),
        lambda root: _workspace(root).digests_file.write_text('{"a": 3}'),
        lambda root: (_workspace(root).run_dir(RUN) / "run.json").unlink(),
    ],
)
def test_something_has_changed(project: Path, change: Callable[[Path], object]) -> None:
    change(project)
    assert not _guess(project)
