"""Full disks, which are small tmpfs: of a node's outputs, of the whole workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.fault

FULL_OUTPUTS = """
mkdir -p "$1/artifacts" && mount -t tmpfs -o size=1m none "$1/artifacts"
cat /dev/zero > "$1/artifacts/ballast" 2> /dev/null
sluice() { "$2" -m runners.cli.main "${@:3}"; }
sluice "$@" run clicks --to TFRecordGen; echo "exit code $?"
rm "$1/artifacts/ballast"
sluice "$@" resume clicks --json >&2
"""
FULL_WORKSPACE = """
mkdir -p "$1" && mount -t tmpfs -o size=1m none "$1"
"$2" -m runners.cli.main run clicks; echo "exit code $?"
"""


def run(mounting, place, script):
    root = str(place.workspace.root)
    return subprocess.run(
        [*mounting, "bash", "-c", script, "-", root, sys.executable],
        cwd=place.project,
        env={**os.environ, "PYTHONPATH": str(own_root()), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


@pytest.mark.acceptance
def test_a_full_disk_of_the_outputs_is_named_and_the_run_resumed(mounting, place):
    done = run(mounting, place, FULL_OUTPUTS)
    assert "exit code 7" in done.stdout
    assert "TFRecordGen failed: " in done.stdout
    assert "No space left on device" in done.stdout
    assert "resume:  sluice resume clicks --run " in done.stdout
    document = json.loads(done.stderr[done.stderr.index('{"schema_version"') :])
    (node,) = (node for node in document["nodes"] if node["id"] == "TFRecordGen")
    assert (document["status"], node["attempts"]) == ("succeeded", 2)


def test_a_run_does_not_begin_on_a_full_disk(mounting, place):
    done = run(mounting, place, FULL_WORKSPACE)
    assert done.stdout.endswith("exit code 2\n")
    assert done.stderr.startswith("error: the disk is full\n"), done.stderr
