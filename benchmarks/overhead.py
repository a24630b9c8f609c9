"""Benchmark: the local runner compared with TFX's LocalDagRunner.

``python benchmarks/overhead.py [--repeat N] [--pipelines digits,taxi] [--branches S]``

Each figure is the wall time of one command in its own process, as for a user:
``sluice run`` against a script that calls TFX's ``LocalDagRunner`` on what the same
``create_pipeline`` returns. So components, settings, Beam options and the AutoGraph
rule of ``sluice.compat`` are the same; the stock script even imports
less than ``from tfx import v1`` does. They alternate, each in its own workspace.

Rows: *cold* (an empty workspace), *nothing changed* (after one unmeasured run each,
since stock evaluates once more against the model that it has just pushed), *a
threshold*, *the model's code*, and *two branches*: two independent nodes of S seconds.
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
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_STOCK = """
import sys
from pathlib import Path
from sluice.compat import prepare_environment
prepare_environment()
from pipeline.graph.create_pipeline import create_pipeline
from pipeline.config.load import load_config
from pipeline.graph.arguments import local_locations
from pipeline.graph.custom_nodes import validate_pipeline
from sluice.project import activate
from sluice.workspace import locate, workspaces_in
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
name, base, *overrides = sys.argv[1:]
sys.argv = sys.argv[:1]
config = validate_pipeline(load_config(name, overrides=overrides)).config
activate(config.root)
with workspaces_in(base):
    workspace = locate(config.root, config.name)
workspace.prepare()
LocalDagRunner().run(create_pipeline(config, local_locations(config, workspace)))
"""

_BRANCHES = """
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
    connection = metadata.sqlite_metadata_connection_config(f"{base}/metadata.db")
    Runner().run(
        Pipeline(
            pipeline_name="branches",
            pipeline_root=f"{base}/root",
            components=[
                Slow(seconds=float(seconds)).with_id("Left"),
                Slow(seconds=float(seconds)).with_id("Right"),
            ],
            metadata_connection_config=connection,
        )
    )
"""

_MODEL = """
from pipeline.training.models.{module} import build_model as built

def build_model(inputs, params):
    return built(inputs, params)
"""
_MODELS = {"digits": "cnn", "taxi": "wide_deep"}
_THRESHOLDS = {
    "digits": "[{metric: accuracy, lower_bound: 0.5}]",
    "taxi": "[{metric: auc, lower_bound: 0.5}]",
}


class Project:
    """A copy of the configs, schemas and data, with a model of the user's own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("configs", "schemas"):
            shutil.copytree(
                ROOT / folder, root / folder, ignore=shutil.ignore_patterns("*.py")
            )
        for name, module in _MODELS.items():
            _run([sys.executable, "-m", "runners.cli.main", "data", "make", name], root)
            self.model_file(name).write_text(_MODEL.format(module=module))

    def model_file(self, name: str) -> Path:
        """Returns the source of a pipeline's model."""
        return self.root / f"model_of_{name}.py"

    def sluice_s(self, name: str, base: Path, *overrides: str) -> float:
        """Returns the seconds of ``sluice run``."""
        command = [sys.executable, "-m", "runners.cli.main", "run", name]
        command += ["--workspace", str(base)]
        for override in (*_same_work(name), *overrides):
            command += ["--set", override]
        return _run(command, self.root)

    def stock_s(self, name: str, base: Path, *overrides: str) -> float:
        """Returns the seconds of TFX's LocalDagRunner."""
        command = [sys.executable, "-c", _STOCK, name, str(base)]
        command += [*_same_work(name), *overrides]
        return _run(command, self.root)


def _same_work(name: str) -> tuple[str, ...]:
    """Returns what both sides override: a model to edit, and epochs in a fixed number.

    With early stopping, rounding decides how many epochs a training takes.
    """
    model = f"model=model_of_{name}:build_model"
    return model, "train.early_stopping=null", "train.epochs=8"


def _run(command: Sequence[str], cwd: Path) -> float:
    """Returns the wall time of a command in seconds; its failure ends the benchmark."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "SLUICE_WORKSPACE": ""}
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True
    )
    took = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return took


def measure(project: Project, name: str, places: Path) -> dict[str, tuple[float, ...]]:
    """Returns (ours, stock) in seconds for each row, measured in turns."""
    ours, stock = places / "ours", places / "stock"

    def both(*overrides: str) -> tuple[float, float]:
        return (
            project.sluice_s(name, ours, *overrides),
            project.stock_s(name, stock, *overrides),
        )

    rows: dict[str, tuple[float, ...]] = {"cold": both()}
    both()
    rows["nothing changed"] = both()
    rows["a threshold"] = both(f"evaluate.thresholds={_THRESHOLDS[name]}")
    source = project.model_file(name)
    source.write_text(source.read_text() + "\nCHANGED = True\n")
    rows["the model's code"] = both()
    source.write_text(source.read_text().replace("\nCHANGED = True\n", ""))
    return rows


def measure_branches(seconds: float, places: Path) -> tuple[float, float]:
    """Returns (ours, stock) in seconds for two independent nodes."""
    script = places / "branches.py"
    script.write_text(_BRANCHES)
    took = []
    for which in ("ours", "stock"):
        base = places / which
        base.mkdir()
        arguments = [sys.executable, str(script), which, str(base), str(seconds)]
        took.append(_run(arguments, places))
    return took[0], took[1]


def main() -> None:
    """Measures and prints every pair, then the ratios of the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--pipelines", default="digits,taxi")
    parser.add_argument("--branches", type=float, default=30.0)
    arguments = parser.parse_args()
    table: dict[str, list[tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory(prefix="sluice-overhead-") as folder:
        project = Project(_made(Path(folder) / "project"))
        for turn in range(arguments.repeat):
            for name in [name for name in arguments.pipelines.split(",") if name]:
                places = _made(Path(folder) / f"{name}-{turn}")
                for row, pair in measure(project, name, places).items():
                    _note(table, f"{name}: {row}", pair)
            if arguments.branches:
                places = _made(Path(folder) / f"branches-{turn}")
                pair = measure_branches(arguments.branches, places)
                _note(table, f"two branches of {arguments.branches:g} s", pair)
    print(f"\n{'row':<32} {'ours':>8} {'stock':>8} {'stock / ours':>13}")
    median: Callable[[list[float]], float] = statistics.median
    for row, pairs in table.items():
        ours = median([pair[0] for pair in pairs])
        stock = median([pair[1] for pair in pairs])
        print(f"{row:<32} {ours:>7.1f}s {stock:>7.1f}s {stock / ours:>13.2f}")


def _note(
    table: dict[str, list[tuple[float, ...]]], row: str, pair: tuple[float, ...]
) -> None:
    table.setdefault(row, []).append(pair)
    print(f"{row:<32} ours {pair[0]:7.1f} s   stock {pair[1]:7.1f} s", flush=True)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main()
