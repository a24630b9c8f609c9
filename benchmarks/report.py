"""Benchmark: what the page and the record's documents add to a run; large pages.

``python benchmarks/report.py [--pairs 3] [--features 2000] [--slices 5000]``

Digits runs with and without them, in turn, each time in a new workspace. All runs share
one process that has imported TFX, so a run here has no start. ``documents.py`` has the
time of each document. The large page is that of a generated record.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests" / "reports")]

from sluice.compat import prepare_environment  # noqa: E402
from sluice.process_tree import descendants  # noqa: E402

# Imported by the process that nodes are forked from.
_WITHOUT = """
import os

from runners.local import node_job

write = node_job.write_documents


def write_unless_told(*arguments):
    return [] if os.path.exists(os.environ["NO_DOCUMENTS"]) else write(*arguments)


node_job.write_documents = write_unless_told
"""
# Early stopping would make trainings of different lengths.
_SAME_WORK = ("train.early_stopping=null", "train.epochs=8")


class Runs:
    """Runs of digits in one pool of processes."""

    def __init__(self, folder: Path) -> None:
        from sample_data import catalog

        self._folder = folder
        self._project = folder / "project"
        self._without = folder / "without"
        for name in ("configs", "schemas"):
            skip = shutil.ignore_patterns("*.py", "__pycache__")
            shutil.copytree(ROOT / name, self._project / name, ignore=skip)
        catalog.make("digits", self._project / "data" / "digits")
        (folder / "without_documents.py").write_text(_WITHOUT)
        os.environ |= {
            "NO_DOCUMENTS": str(self._without),
            "PYTHONPATH": f"{ROOT}:{folder}",
            "SLUICE_WORKSPACE": "",
        }
        os.chdir(self._project)

    def measure(self, pairs: int) -> None:
        """Runs the pairs after one run to warm up, and prints all of them."""
        from pipeline.graph.node_registry import modules_to_preload
        from runners.local.processes.process_pool import PRELOADED, ProcessPool

        modules = [*PRELOADED, *modules_to_preload(), "without_documents"]
        taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        pages = []
        log = self._folder / "start.log"
        with ProcessPool(log, cwd=self._project, modules=modules) as pool:
            self._run(pool, True)
            for pair in range(pairs):
                # Which of the two is first alternates.
                for is_with in (pair % 2 == 0, pair % 2 == 1):
                    before_s = _cpu_s()
                    took_s, page_s = self._run(pool, is_with)
                    cpu_s = _cpu_s() - before_s
                    taken[is_with].append((took_s, cpu_s))
                    name = "with" if is_with else "without"
                    print(f"{name:8} {took_s:7.2f} s {cpu_s:7.2f} s CPU", flush=True)
                    if is_with:
                        pages.append(page_s)
        for what, index in (("wall", 0), ("CPU", 1)):
            both = [[item[index] for item in taken[key]] for key in (True, False)]
            ratios = [a / b for a, b in zip(*both, strict=True)]
            with_s, without_s = map(statistics.median, both)
            print(
                f"{what}, medians: with {with_s:.2f} s, without {without_s:.2f} s: "
                f"{with_s / without_s:.3f} x; pair by pair "
                f"{', '.join(f'{ratio:.3f}' for ratio in ratios)}"
            )
        print(f"the page alone, median: {statistics.median(pages):.2f} s")

    def _run(self, pool: Any, is_with: bool) -> tuple[float, float]:
        """Returns the seconds of a run, and those in which its page was drawn."""
        from runners.local.engine import LocalEngine
        from runners.operations import run_lifecycle
        from runners.operations.run import RunRequest, run

        page_s = 0.0
        write = run_lifecycle.write_report

        def write_timed(recorder: Any) -> None:
            nonlocal page_s
            if is_with:
                begin = time.perf_counter()
                write(recorder)
                page_s = time.perf_counter() - begin

        self._without.unlink(missing_ok=True)
        if not is_with:
            self._without.touch()
        workspaces = self._folder / "workspaces"
        request = RunRequest(
            name="digits",
            overrides=_SAME_WORK,
            workspace_dir=str(workspaces),
            command="benchmark",
            workers=2,
        )
        run_lifecycle.write_report = write_timed
        start = time.perf_counter()
        try:
            record = run(request, engine=LocalEngine(pool))
        finally:
            run_lifecycle.write_report = write
        took_s = time.perf_counter() - start
        if record.status != "succeeded":
            sys.exit(f"the run has {record.status}: {record.error}")
        if bool(record.documents) != is_with:
            sys.exit(f"the run has {len(record.documents)} documents")
        shutil.rmtree(workspaces)
        return took_s, page_s


def _cpu_s() -> float:
    """Returns the CPU time so far of this process, of the pool, and of ended nodes."""
    pool = psutil.Process(descendants(os.getpid())[0]).cpu_times()
    nodes = pool.children_user + pool.children_system
    return time.process_time() + pool.user + pool.system + nodes


def measure_page(folder: Path, features: int, slices: int) -> None:
    """Draws the page of a generated record twice, and prints time and size."""
    from generated_run import write_run

    from reports.run_page import write_report

    run_dir = write_run(folder / "large", features=features, slices=slices)
    for turn in ("first", "again"):
        start = time.perf_counter()
        page = Path(write_report(run_dir))
        print(
            f"page of {features:,} features and {slices:,} slices, {turn}: "
            f"{time.perf_counter() - start:.2f} s, {page.stat().st_size / 1e6:.2f} MB"
        )


def main() -> None:
    """Measures what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--slices", type=int, default=5000)
    arguments = parser.parse_args()
    prepare_environment()
    with tempfile.TemporaryDirectory(prefix="sluice-report-bench-") as name:
        folder = Path(name)
        measure_page(folder, arguments.features, arguments.slices)
        if arguments.pairs:
            Runs(folder).measure(arguments.pairs)


if __name__ == "__main__":
    main()
