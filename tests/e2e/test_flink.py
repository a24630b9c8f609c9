"""Data steps on a real Flink: what they compute, and what fails there.

One job manager, two task managers and a job server run on this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from tensorflow_metadata.proto.v0.statistics_pb2 import DatasetFeatureStatisticsList

from components.model_verdict.read_evaluation import read_evaluation
from pipeline.config.load import load_config
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.splits import split_statistics_path
from sluice.workspace import Workspace
from tests.kit.ports import free_ports

pytestmark = [pytest.mark.e2e, pytest.mark.fault, pytest.mark.acceptance]
_QUICK = ("train.epochs=1", "train.early_stopping=null", "evaluate.thresholds=[]")
_SCRIPT = own_root() / "setup" / "flink.sh"


@dataclass
class Flink:
    """A Flink of this machine, and what a run needs to know of it."""

    folder: Path
    ports: dict[str, int]

    def script(self, *arguments: str) -> None:
        names = {"FLINK_PORT": "master", "FLINK_JOB_PORT": "job_endpoint"}
        ports = {name: str(self.ports[key]) for name, key in names.items()}
        own = {"FLINK_DIR": str(self.folder), "FLINK_SLOTS": "2", **ports}
        subprocess.run([_SCRIPT, *arguments], env={**os.environ, **own}, check=True)

    def settings(self, **changes: Any) -> list[str]:
        at = {key: f"127.0.0.1:{port}" for key, port in self.ports.items()}
        beam = {"engine": "flink", **at, "workers": 2, **changes}
        return [f"beam.{key}={value}" for key, value in beam.items()]

    def overview(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.ports['master']}/overview"
        return dict(requests.get(url, timeout=10).json())

    def kill_task_managers(self) -> None:
        for file in self.folder.glob("task-manager-*.pid"):
            os.kill(int(file.read_text()), signal.SIGKILL)
            file.unlink()


@pytest.fixture(scope="module")
def flink(tmp_path_factory) -> Iterator[Flink]:
    """Skips where Java or Maven is missing; in CI it fails there."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        text = f"no {', '.join(missing)}: apt-get install default-jre-headless maven"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(text)
    keys = ("master", "job_endpoint", "worker_pool")
    found = Flink(
        tmp_path_factory.mktemp("flink"), dict(zip(keys, free_ports(3), strict=False))
    )
    try:
        try:
            found.script("start", "job-server", "job-manager", *["task-manager"] * 2)
        except subprocess.CalledProcessError:
            if not [*own_root().glob(".flink/lib-*")]:
                pytest.skip("Maven has not brought the job server")
            raise
        yield found
    finally:
        found.script("stop")


@pytest.fixture(scope="module")
def pool(flink: Flink, fork_command: Callable[..., Any], project: Path, wait_for):
    """The worker pool of this machine."""
    port = str(flink.ports["worker_pool"])
    command = fork_command("beam-workers", "--port", port, cwd=project)
    wait_for(lambda: "ready" in command.printed()[0], "the worker pool")
    yield command
    os.kill(command.pid, signal.SIGTERM)
    command.wait()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("on_flink") / "digits")


@pytest.fixture(scope="module")
def alone(run_config, project: Path, workspace: Workspace) -> Any:
    """The record of a run in process."""
    config = load_config("digits", cwd=project, overrides=_QUICK)
    return run_config(config, workspace)


def test_verdicts_and_metrics_are_the_same(
    alone, flink, pool, project, workspace, run_config
):
    settings = [*flink.settings(), *_QUICK]
    config = load_config("digits", cwd=project, overrides=settings)
    there = run_config(config, workspace, forced=["Evaluator"])
    assert there.exit_code == alone.exit_code == 0, there.error
    assert {node.id for node in there.nodes if node.state == "ran"} <= {
        *("LatestBlessedModel", "Evaluator", "ModelVerdict", "Pusher")
    }
    assert "Evaluator: Beam runs on the engine" in "".join(there.notes)
    (of_engine, expected) = (
        read_evaluation(
            record.node("Evaluator").outputs["evaluation"][0], "", "0123456789"
        )
        for record in (there, alone)
    )
    assert {*of_engine.metrics} == {*expected.metrics}
    for key, values in expected.metrics.items():
        assert of_engine.metrics[key] == pytest.approx(values, rel=1e-4, nan_ok=True)
    assert there.gates == alone.gates
    overview = flink.overview()
    assert overview["jobs-finished"] >= 1
    assert overview["slots-available"] == overview["slots-total"] == 4


@pytest.mark.parametrize("engine", ["flink", "portable"])
def test_ingested_files_are_the_same(
    engine, alone, flink, pool, project, run_config, tmp_path
):
    """A job server whose Flink is within it is one of any engine, too."""
    settings = flink.settings(engine=engine, master="local")
    config = load_config("digits", cwd=project, overrides=settings)
    there = run_config(config, Workspace(tmp_path / "digits"), to_nodes=["TFRecordGen"])
    assert there.exit_code == 0, there.error
    assert "TFRecordGen: Beam runs on the engine" in "".join(there.notes)
    for output in ("examples", "quarantine"):
        assert _files(there, output) == _files(alone, output)


def test_a_lost_task_manager_fails_the_node(
    alone, flink, pool, project, workspace, fork_command, wait_for
):
    """The run goes on when there are task managers again."""
    place = {"SLUICE_WORKSPACE": str(workspace.root.parent)}
    settings = [word for x in (*flink.settings(), *_QUICK) for word in ("--set", x)]
    command = fork_command(
        *("run", "digits", "--force", "StatisticsGen", "--to", "StatisticsGen"),
        *settings,
        cwd=project,
        **place,
    )
    of_pool = psutil.Process(pool.pid).children
    wait_for(lambda: "sluice-beam" in [x.name() for x in of_pool()], "a worker")
    flink.kill_task_managers()
    result = command.completed()
    assert result.returncode == 7
    assert "the engine says: " in result.stdout + result.stderr
    assert flink.overview()["jobs-failed"] == 1
    # The job manager gives up on each after a time without heartbeats.
    wait_for(lambda: not flink.overview()["taskmanagers"], "their loss", 60)
    without = fork_command("resume", "digits", cwd=project, **place).completed()
    assert without.returncode == 8
    assert "has no task manager" in without.stdout + without.stderr
    flink.script("start", *["task-manager"] * 2)
    resumed = fork_command("resume", "digits", cwd=project, **place)
    assert resumed.completed().returncode == 0
    record = RunRecord.load(max((workspace.root / "runs").iterdir()))
    there = record.node("StatisticsGen").outputs
    assert _statistics(there) == _statistics(alone.node("StatisticsGen").outputs)


def _files(record: RunRecord, output: str) -> dict[str, bytes]:
    (uri,) = record.node("TFRecordGen").outputs[output]
    files = [path for path in Path(uri).rglob("*") if path.is_file()]
    assert files
    return {str(path.relative_to(uri)): path.read_bytes() for path in files}


def _statistics(outputs: dict[str, list[str]]) -> dict[str, list[Any]]:
    found = {}
    for split in ("train", "eval", "test"):
        path = Path(split_statistics_path(outputs["statistics"][0], split))
        statistics = DatasetFeatureStatisticsList.FromString(path.read_bytes())
        (of_split,) = statistics.datasets
        features = (
            (x.path.step[0], x.num_stats.mean, x.num_stats.common_stats.tot_num_values)
            for x in of_split.features
        )
        found[split] = [of_split.num_examples, *sorted(features)]
    return found


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("job_endpoint", "job server does not answer"),
        ("master", "job manager does not answer"),
        ("worker_pool", "no worker pool answers"),
    ],
)
def test_what_is_not_there_is_said_before_the_first_node(
    missing, said, flink, pool, project, run_config, tmp_path
):
    nowhere = {missing: f"127.0.0.1:{free_ports(1)[0]}"}
    settings = [*flink.settings(**nowhere), *_QUICK]
    config = load_config("digits", cwd=project, overrides=settings)
    record = run_config(config, Workspace(tmp_path / "digits"))
    assert record.exit_code == 8
    assert said in record.error.message
    assert not [node for node in record.nodes if node.state == "ran"]
