"""Benchmark: time and size of a run's documents and page, beside the run's own time.

``python benchmarks/report.py [--repeat N] [--pipelines digits,taxi]``

Runs each pipeline twice in an empty workspace, so that the second run has a baseline,
then makes the documents and the page of that run again. The libraries are imported
before the clock starts, as they are in the processes of the nodes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from overhead import SLUICE, make_project, run  # noqa: E402


def measure(run_dir: Path) -> tuple[float, float, int]:
    """Returns the seconds of documents and page, and the bytes of the page."""
    from reports.run_page import write_report
    from runners.documents.write import write_documents
    from runners.metadata.read_metadata import read_metadata
    from sluice.record.parts import NodeEnd

    graph = read_metadata(run_dir.parents[1] / "metadata.db")
    executions = [x for x in graph.executions.values() if x.run_id == run_dir.name]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for found in executions:
            end = NodeEnd(found.node, "ran")
            end.inputs = graph.by_key(found.inputs)
            end.outputs = graph.by_key(found.outputs)
            write_documents(end, run_dir, Path(folder), found.properties)
            if end.notes:
                sys.exit("\n".join(end.notes))
        documents_s = time.perf_counter() - start
        page = Path(folder, "report.html")
        start = time.perf_counter()
        write_report(run_dir, page)
        return documents_s, time.perf_counter() - start, page.stat().st_size


def main() -> None:
    """Measures and prints each pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pipelines", default="digits,taxi")
    arguments = parser.parse_args()
    names = arguments.pipelines.split(",")
    import tensorflow_model_analysis  # noqa: F401

    with tempfile.TemporaryDirectory(prefix="sluice-report-") as folder:
        project, workspace = Path(folder, "project"), Path(folder, "workspace")
        make_project(project, names)
        for name in names:
            run([*SLUICE, "run", name], project, workspace)
            again = ["run", name, "--set", "train.seed=18"]
            run_s = run([*SLUICE, *again], project, workspace)
            run_dir = max((workspace / name / "runs").glob("2*"))
            found = [measure(run_dir) for _ in range(arguments.repeat)]
            documents_s, page_s, size = map(statistics.median, zip(*found, strict=True))
            share = (documents_s + page_s) / run_s
            print(
                f"{name}: run {run_s:.1f} s, documents {documents_s:.2f} s, "
                f"page {page_s:.2f} s, {share:.1%} of the run; {size / 1e6:.2f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
