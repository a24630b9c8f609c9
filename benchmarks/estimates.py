"""Benchmark: the share of an evaluation's time that goes into intervals and references.

``python benchmarks/estimates.py [--sizes 2250x7,20000x20,100000x100]``

Each size is a number of examples and of slices. A candidate and a baseline of two
classes are evaluated by the Evaluator's executor in this process, with four metrics;
what ``MetricEstimates`` takes is CPU time of the same process, in the same evaluation.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

METRICS = ("BinaryAccuracy", "AUC", "Recall", "BinaryCrossentropy")


def timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Returns the function; its CPU seconds are added to ``spent``."""

    @functools.wraps(function)
    def run(*given: Any, **named: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*given, **named)
        finally:
            spent.append(time.thread_time() - start)

    return run


def main() -> None:
    """Measures and prints each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="2250x7,20000x20,100000x100")
    arguments = parser.parse_args()
    from sluice.compat import prepare_environment

    prepare_environment()
    from components import estimates
    from tests.components.conftest import Evaluations

    spent: list[float] = []
    for name in ("add_batch", "merge_accumulators", "extract_output"):
        method = getattr(estimates.Rows, name)
        setattr(estimates.Rows, name, timed(method, spent))
    for size in arguments.sizes.split(","):
        count, slices = map(int, size.split("x"))
        source = random.Random(3)
        records = []
        for _ in range(count):
            x = source.gauss(0, 1)
            region = b"%d" % source.randrange(slices - 1)
            label = int(x + source.gauss(0, 1) > 0)
            records.append({"x": x, "region": region, "label": label})
        with tempfile.TemporaryDirectory(prefix="sluice-estimates-") as folder:
            place = Evaluations(Path(folder, "place"), 2, METRICS)
            examples = place.write_examples("examples", records)
            models = [place.write_model(n, s) for n, s in (("a", 1.2), ("b", 1.0))]
            place.evaluate(examples, *models)  # The first one imports and traces.
            spent.clear()
            start = time.process_time()
            place.evaluate(examples, *models)
            whole = time.process_time() - start
        print(
            f"{count:,} examples, {slices} slices: evaluation {whole:.1f} s of CPU, "
            f"estimates {sum(spent):.2f} s, {sum(spent) / whole:.1%}"
        )


if __name__ == "__main__":
    main()
