"""Disks that are full: of the metadata, of a node's outputs, of the whole workspace.

The disks are small tmpfs, mounted in a mount namespace of their own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.fault

# All of it runs in one namespace, whose disks are gone at its end.
SCRIPT = """
set -e
python=$1 results=$2 workspace=$3
sluice() {
  name=$1; shift; code=0
  $python -m runners.cli.main "$@" > $results/$name.out 2> $results/$name.err \\
    || code=$?
  echo $code > $results/$name.code
}
fill() { head -c 100m /dev/zero > $1/ballast 2> /dev/null || true; }

mkdir -p $workspace/artifacts $results/disk
mount -t tmpfs -o size=1m none $workspace/artifacts
mount -t tmpfs -o size=64k none $results/disk
touch $results/disk/metadata.db $workspace/metadata.db
mount --bind $results/disk/metadata.db $workspace/metadata.db

sluice metadata run digits --to TFRecordGen
mount -o remount,size=4m $results/disk
fill $workspace/artifacts
truncate -s -4k $workspace/artifacts/ballast
sluice outputs resume digits
find $workspace/artifacts -name 'data_*' > $results/left
rm $workspace/artifacts/ballast
sluice room resume digits --json
cp -r $workspace/artifacts $workspace/metadata.db $results

mount -t tmpfs -o size=1m none $workspace
fill $workspace
sluice new run digits
rm $workspace/ballast
mkdir -p $workspace/inputs $workspace/state $workspace/runs
echo '{"format": 1}' > $workspace/workspace.json
fill $workspace
sluice used run digits
"""


@pytest.fixture(scope="module")
def disks(
    make_place: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
    mounting: list[str],
) -> tuple[Any, Path]:
    """The place, as it was after the last resume, and the outcome of each command."""
    place, results = make_place("disks"), tmp_path_factory.mktemp("disks_results")
    root = place.workspace.root
    subprocess.run(
        [*mounting, "bash", "-c", SCRIPT, "-", sys.executable, results, root],
        cwd=place.project,
        env=place.environment,
        check=True,
        timeout=600,
    )
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


def test_with_room_a_resume_completes(disks: tuple[Any, Path]) -> None:
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


@pytest.mark.parametrize(
    ("name", "message"),
    [("new", "the workspace cannot be written"), ("used", "the disk is full")],
)
def test_a_run_does_not_begin_on_a_full_disk(
    disks: tuple[Any, Path], name: str, message: str
) -> None:
    code, _ = _of(disks[1], name)
    assert code == 2
    err = (disks[1] / f"{name}.err").read_text()
    assert err.startswith(f"error: {message}\n  where:    {disks[0].workspace.root}")
    assert "found:    No space left on device" in err
