"""Data steps in several processes: what they compute, and what a killed one leaves."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from components.model_verdict.read_evaluation import read_evaluation
from pipeline.config.load import load_config
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]
_QUICK = ("train.epochs=1", "train.early_stopping=null", "evaluate.thresholds=[]")


@pytest.fixture(scope="module")
def records(project: Path, run_config, tmp_path_factory) -> dict[int, RunRecord]:
    """Runs of the taxi pipeline, by the number of processes."""
    found = {}
    for workers in (1, 3):
        settings = [f"beam.workers={workers}", *_QUICK]
        config = load_config("taxi", cwd=project, overrides=settings)
        root = tmp_path_factory.mktemp(f"workers_{workers}") / "taxi"
        found[workers] = run_config(config, Workspace(root))
    return found


def _files(record: RunRecord, node: str, output: str, part: str) -> dict[str, bytes]:
    (uri,) = record.node(node).outputs[output]
    found = {
        str(path.relative_to(uri)): path.read_bytes()
        for path in Path(uri).glob(part)
        if path.is_file()
    }
    assert found
    return found


@pytest.mark.parametrize(
    ("node", "output", "part"),
    [
        ("TFRecordGen", "examples", "Split-*/*"),
        ("StatisticsGen", "statistics", "**/*"),
        ("Transform", "transform_graph", "transform_fn/assets/*"),
        ("Transform", "transform_graph", "transformed_metadata/*"),
    ],
)
def test_files_are_the_same(records, node, output, part):
    assert _files(records[1], node, output, part) == _files(
        records[3], node, output, part
    )


def test_metrics_are_the_same(records):
    alone, several = (
        read_evaluation(
            records[count].node("Evaluator").outputs["evaluation"][0], "", "01"
        )
        for count in (1, 3)
    )
    assert {*alone.metrics} == {*several.metrics} and len(alone.metrics) > 3
    for key, values in alone.metrics.items():
        assert values == pytest.approx(several.metrics[key], rel=1e-4, nan_ok=True)
    assert alone.estimates[()].metrics.keys() == several.estimates[()].metrics.keys()


def test_what_ran_in_several_processes_is_said(records):
    said = [note for note in records[3].notes if "Beam" in note]
    assert [note.partition(":")[0] for note in said] == ["Transform", "Evaluator"]
    assert all("3 processes, as beam.workers says" in note for note in said)
    assert not any("Beam" in note for note in records[1].notes)


def test_a_killed_worker_fails_its_node(fork_command, project, wait_for, is_gone):
    """The run can be resumed, and no process is left."""
    settings = [word for x in ("beam.workers=2", *_QUICK) for word in ("--set", x)]
    command = fork_command(
        "run", "taxi", *settings, cwd=project, SLUICE_WORKSPACE="killed"
    )

    def busy_worker() -> psutil.Process | None:
        for process in psutil.Process(command.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                busy = (
                    process.name() == "sluice-beam" and process.cpu_times().user > 0.2
                )
                if busy and process.parent().name().startswith("sluice:Trans"):
                    return process
        return None

    worker = wait_for(busy_worker, "a busy worker")
    node = worker.parent()
    everything = [node, *node.children(recursive=True)]
    worker.kill()
    result = command.completed()
    assert result.returncode == 7
    assert "a worker process was killed by signal 9" in result.stdout + result.stderr
    assert "beam.workers" in result.stdout + result.stderr
    assert all(is_gone(process.pid) for process in everything)
    resumed = fork_command("resume", "taxi", cwd=project, SLUICE_WORKSPACE="killed")
    assert resumed.completed().returncode == 0
