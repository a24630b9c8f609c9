"""Process pools with small jobs of their own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.local.processes.process_pool import ProcessPool

# For pool_messages: test folders are no packages.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def jobs_dir(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).with_name("tiny_jobs.py"), tmp_path)
    return tmp_path


@pytest.fixture
def bare(jobs_dir: Path) -> Iterator[ProcessPool]:
    """A process pool that imports nothing beforehand."""
    with ProcessPool(jobs_dir / "start.log", cwd=jobs_dir, modules=()) as process_pool:
        yield process_pool
