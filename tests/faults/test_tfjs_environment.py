"""The environment of TF.js' converter appears whole, whatever happens before."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.project import own_root

pytestmark = [pytest.mark.tf, pytest.mark.fault]


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """One small package of the real lock; as its hashes say."""
    lines = (own_root() / "requirements" / "tfjs.txt").read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("six=="))
    path = tmp_path / "six.txt"
    path.write_text("\n".join(lines[begin : begin + 3]) + "\n")
    return path


def _make(lock: Path, cache: Path) -> None:
    from pipeline.training.exports.tfjs import make_environment

    make_environment(lock, cache)


def test_a_killed_installation_is_begun_anew(lock, tmp_path, wait_for):
    cache = tmp_path / "cache"
    maker = multiprocessing.get_context("fork").Process(
        target=_make, args=(lock, cache)
    )
    maker.start()
    wait_for(lambda: [*cache.glob("partial-*/pyvenv.cfg")])
    maker.kill()
    maker.join()
    assert not [*cache.glob("six-*")]
    from pipeline.training.exports.tfjs import make_environment

    python = make_environment(lock, cache)
    assert subprocess.run([python, "-c", "import six"]).returncode == 0
    made = python.stat().st_ctime_ns
    assert make_environment(lock, cache).stat().st_ctime_ns == made
    # It outlives the environment of the project that has made it.
    assert not (python.parent / os.readlink(python)).is_relative_to(sys.prefix)
