"""Full disks: of the metadata, of a node's outputs, of the whole workspace.

The disks are small tmpfs; ``full_disks`` mounts and fills them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.local.processes.job import Job
from runners.local.processes.process_pool import ProcessPool

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def disks(
    make_place: Callable[..., Any],
    process_pool: ProcessPool,
    tmp_path_factory: pytest.TempPathFactory,
    mounting: list[str],
) -> tuple[Any, Path]:
    """The project after the last resume, and the folder of the commands' outcomes."""
    place, results = make_place("disks"), tmp_path_factory.mktemp("disks_results")
    root = place.workspace.root
    log = results / "log"
    arguments = {
        "project": str(place.project),
        "workspace": str(root),
        "results": str(results),
        "environment": place.variables,
        "user_namespace": mounting[-1] != "-m",
    }
    job = Job("full_disks:main", arguments, str(log))
    ended = process_pool.run("disks", job)
    assert ended and ended["status"] == 0, log.read_text()
    shutil.copytree(results / "artifacts", root / "artifacts", dirs_exist_ok=True)
    shutil.copy(results / "metadata.db", root / "metadata.db")
    return place, results


def _of(results: Path, name: str) -> tuple[int, str]:
    code = int((results / f"{name}.code").read_text())
    return code, (results / f"{name}.out").read_text()


def test_a_full_disk_of_the_metadata_is_named(disks: tuple[Any, Path]) -> None:
    code, out = _of(disks[1], "metadata")
    assert code == 7
    assert "TFRecordGen failed: " in out
    assert "Metadata" in out and "database or disk is full" in out
    assert "try:      free some disk space" in out
    assert "resume:  sluice resume digits --run " in out


def test_a_full_disk_of_the_outputs_is_named(disks: tuple[Any, Path]) -> None:
    code, out = _of(disks[1], "outputs")
    assert code == 7
    assert "TFRecordGen failed: " in out
    assert "[Errno 28] No space left on device" in out
    assert "try:      free some disk space" in out
    assert "resume:  sluice resume digits --run " in out
    assert (disks[1] / "left").read_text() == ""


def test_resume_completes_once_there_is_room(disks: tuple[Any, Path]) -> None:
    place, results = disks
    code, _ = _of(results, "room")
    assert code == 0, (results / "room.err").read_text()
    assert place.record().status == "succeeded"
    node = place.record().node("TFRecordGen")
    assert (node.state, node.attempts) == ("ran", 3)
    assert place.executions() == {"TFRecordGen": 1}
    counts = [place.records_in(split) for split in ("train", "eval", "test")]
    assert counts == [120, 120, 120]
    place.assert_sound(versions=[])


@pytest.mark.parametrize("name", ["new", "used", "little"])
def test_a_run_does_not_begin_on_a_full_disk(
    disks: tuple[Any, Path], name: str
) -> None:
    code, out = _of(disks[1], name)
    assert (code, out) == (2, "")
    err = (disks[1] / f"{name}.err").read_text()
    where = disks[0].workspace.root
    assert err.startswith(f"error: the disk is full\n  where:    {where}")
    assert "found:    No space left on device" in err
