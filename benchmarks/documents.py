"""Benchmark: what each document in ``record/`` costs.

``python benchmarks/documents.py workspace/digits/runs/RUN_ID [--repeat 3]``

The documents of a run are written again, to another folder, and timed by kind. As in
the processes of the nodes, TFX and TensorFlow are imported before the clock starts; the
files are in the page cache. Documents that were there before samples, models and
mistakes are listed too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pipeline.config.serialize import privacy_of  # noqa: E402
from runners.local import write_documents as writer  # noqa: E402
from runners.local.document_content import DescribedNode  # noqa: E402
from runners.metadata.read_metadata import open_store, read_upstream  # noqa: E402
from runners.metadata.served_models import served_models  # noqa: E402
from runners.metadata.trace_lineage import trace_lineage  # noqa: E402
from sluice.compat import prepare_environment  # noqa: E402
from sluice.mlmd_items import plain_properties  # noqa: E402
from sluice.record.events import NodeFinished  # noqa: E402
from sluice.record.journal import Journal  # noqa: E402

Seconds = tuple[float, float]


def described(event: NodeFinished, store: Any) -> DescribedNode:
    """Returns a node as its process describes it."""
    (execution,) = store.get_executions_by_id([event.execution_id])
    inputs, outputs = (
        {key: [asdict(artifact) for artifact in items] for key, items in side.items()}
        for side in (event.inputs, event.outputs)
    )

    def lineage_of(artifact_id: int) -> dict[str, Any]:
        upstream, complete = read_upstream(store, artifact_id)
        traced = trace_lineage(upstream, artifact_id, served_models(upstream, ()))
        return {**traced.made_of(), "complete": complete}

    return DescribedNode(
        event.node,
        outputs,
        inputs,
        properties=plain_properties(execution),
        lineage_of=lineage_of,
        is_resolver=not execution.type.startswith(("tfx.components", "components")),
    )


def measure(run_dir: Path, repeat: int) -> dict[str, list[Seconds]]:
    """Returns the seconds of each kind, wall and CPU, once per repetition."""
    write, times = writer._write, defaultdict[str, list[Seconds]](list)

    def timed(kind: str, *arguments: Any) -> Any:
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        path = write(kind, *arguments)
        spent = time.monotonic() - began_s, time.process_time() - began_cpu_s
        now[kind] = tuple(map(sum, zip(now[kind], spent, strict=True)))
        return path

    writer._write = timed  # type: ignore[assignment]
    with open_store(run_dir.parents[1] / "metadata.db") as store:
        nodes = [
            described(event, store)
            for event in Journal(run_dir).new_events()
            if isinstance(event, NodeFinished) and event.execution_id
        ]
        for _ in range(repeat):
            now: dict[str, Any] = defaultdict(lambda: (0.0, 0.0))
            with tempfile.TemporaryDirectory() as folder:
                config = Path(folder, "config.json")
                config.write_bytes((run_dir / "config.json").read_bytes())
                for node in nodes:
                    writer.write_documents(node, Path(folder), privacy_of(config))
            now["all"] = tuple(map(sum, zip(*now.values(), strict=True)))
            for kind, spent in now.items():
                times[kind].append(spent)
    return times


def main() -> None:
    """Prints the medians and the first time, when more is imported, of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    prepare_environment()
    import tfx.components  # noqa: F401

    times = measure(options.run_dir.resolve(), options.repeat)
    for kind, spent in times.items():
        wall_s, cpu_s = map(statistics.median, zip(*spent, strict=True))
        first_s = spent[0][0]
        print(f"{kind:20} {wall_s:6.3f} s, CPU {cpu_s:6.3f} s; first {first_s:6.3f} s")


if __name__ == "__main__":
    main()
