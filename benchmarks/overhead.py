"""Benchmark: the local runner compared with TFX's LocalDagRunner.

``python benchmarks/overhead.py [--repeat N] [--pipelines digits,taxi] [--branches S]``

Each figure is the wall time of one command in its own process, as for a user:
``sluice run`` against a script that calls TFX's ``LocalDagRunner`` on what the same
``create_pipeline`` returns. So components, settings, Beam options and the AutoGraph
rule of ``sluice.patches`` are the same; the stock script even imports less than ``from
tfx import v1`` does. They alternate, each in its own workspace.

Rows: *cold* (an empty workspace), *again* (stock evaluates once more, against the model
that it has just pushed), *nothing changed*, *no thresholds*, *another seed*, and *two
branches*: two independent nodes of S seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLUICE = [sys.executable, "-m", "runners.cli.main"]

# With early stopping, rounding decides how many epochs a training takes.
SAME_WORK = ("train.early_stopping=null", "train.epochs=8")
ROWS = {
    "cold": (),
    "again": (),
    "nothing changed": (),
    "no thresholds": ("evaluate.thresholds=[]",),
    "another seed": ("train.seed=18",),
}

STOCK = """
import sys
from sluice.compat import prepare_environment
prepare_environment()
from pipeline.config.load import load_config
from pipeline.graph.create_pipeline import create_pipeline
from pipeline.checks.before_run import check_before_run
from sluice.workspace import locate
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
name, *overrides = sys.argv[1:]
sys.argv = sys.argv[:1]
config = check_before_run(load_config(name, overrides=overrides))
locate(config.root, config.name).prepare()
LocalDagRunner().run(create_pipeline(config))
"""

BRANCHES = """
import sys
import time
from tfx.dsl.component.experimental.annotations import OutputDict, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline

@component
def Slow(seconds: Parameter[float]) -> OutputDict(done=int):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return {"done": 1}

if __name__ == "__main__":
    which, base, seconds = sys.argv[1:]
    sys.argv = sys.argv[:1]
    if which == "stock":
        from tfx.orchestration.local.local_dag_runner import LocalDagRunner as Runner
    else:
        from runners.local.local_runner import LocalRunner as Runner
    nodes = [Slow(seconds=float(seconds)).with_id(name) for name in ("Left", "Right")]
    database = metadata.sqlite_metadata_connection_config(f"{base}/metadata.db")
    pipeline = Pipeline(
        pipeline_name="branches",
        pipeline_root=f"{base}/root",
        components=nodes,
        metadata_connection_config=database,
    )
    Runner().run(pipeline)
"""


def run(command: list[str], cwd: Path, workspace: Path) -> float:
    """Returns the wall time of a command in seconds; its failure ends the benchmark."""
    variables = {"PYTHONPATH": str(ROOT), "SLUICE_WORKSPACE": str(workspace)}
    environment = {**os.environ, **variables, "TF_CPP_MIN_LOG_LEVEL": "2"}
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True
    )
    took = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return took


def make_project(project: Path, names: list[str]) -> None:
    """Copies configs and schemas, and makes the data."""
    for folder in ("configs", "schemas"):
        shutil.copytree(
            ROOT / folder, project / folder, ignore=shutil.ignore_patterns("*.py")
        )
    for name in names:
        run([*SLUICE, "data", "make", name], project, project)


def measure(project: Path, name: str, row: str, places: Path) -> tuple[float, float]:
    """Returns the seconds of a row: ours, and stock."""
    overrides = [*SAME_WORK, *ROWS[row]]
    settings = [word for override in overrides for word in ("--set", override)]
    ours = [*SLUICE, "run", name, *settings]
    stock = [sys.executable, "-c", STOCK, name, *overrides]
    return run(ours, project, places / "ours"), run(stock, project, places / "stock")


def measure_branches(seconds: float, places: Path) -> tuple[float, float]:
    """Returns the seconds of two independent nodes: ours, and stock."""
    script = places / "branches.py"
    script.write_text(BRANCHES)
    took = []
    for which in ("ours", "stock"):
        base = places / which
        base.mkdir()
        command = [sys.executable, str(script), which, str(base), str(seconds)]
        took.append(run(command, places, base))
    return took[0], took[1]


def main() -> None:
    """Measures and prints every pair, then the ratios of the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--pipelines", default="digits,taxi")
    parser.add_argument("--branches", type=float, default=30.0)
    arguments = parser.parse_args()
    names = [name for name in arguments.pipelines.split(",") if name]
    table: dict[str, list[tuple[float, float]]] = {}

    def note(row: str, pair: tuple[float, float]) -> None:
        table.setdefault(row, []).append(pair)
        print(f"{row:<32} ours {pair[0]:7.1f} s   stock {pair[1]:7.1f} s", flush=True)

    with tempfile.TemporaryDirectory(prefix="sluice-overhead-") as folder:
        project = Path(folder, "project")
        make_project(project, names)
        for turn in range(arguments.repeat):
            places = Path(folder, str(turn))
            for name in names:
                for row in ROWS:
                    pair = measure(project, name, row, places / name)
                    note(f"{name}: {row}", pair)
            if arguments.branches:
                places.mkdir(exist_ok=True)
                pair = measure_branches(arguments.branches, places)
                note(f"two branches of {arguments.branches:g} s", pair)
    print(f"\n{'row':<32} {'ours':>8} {'stock':>8} {'stock / ours':>13}")
    for row, pairs in table.items():
        ours, stock = map(statistics.median, zip(*pairs, strict=True))
        print(f"{row:<32} {ours:>7.1f}s {stock:>7.1f}s {stock / ours:>13.2f}")


if __name__ == "__main__":
    main()
