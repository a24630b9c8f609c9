"""The DAG of ``schedule print``, run by a real scheduler of Airflow."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from sluice.project import own_root
from sluice.record.outcome import outcome
from sluice.record.run_record import RunRecord
from tests.e2e.conftest import Trips
from tests.kit.wait import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

TASKS = ("data_gate", "retrain_gate", "model_gate", "push")
FINAL = ("success", "skipped", "failed", "upstream_failed")
SETTINGS = (
    "data.splits={train: 'span-{SPAN}/train*', eval: 'span-{SPAN}/eval*'}",
    "train.epochs=20",
    "retrain.min_new_examples=1",
)
_INSTALL = """
. setup/uv.sh && provide_uv
"$UV" venv --quiet --python "$1" "$2"
"$UV" pip install --quiet --python "$2/bin/python" --require-hashes -r "$3"
"""
# Airflow's database, read without Airflow: each state of each run, oldest first.
_STATES = """
SELECT d.run_id, t.task_id, t.state, t.try_number
FROM dag_run d JOIN task_instance t USING (dag_id, run_id) ORDER BY d.run_after
"""
_TIMES = """
SELECT run_after, start_date, end_date
FROM dag_run WHERE end_date IS NOT NULL ORDER BY run_after
"""


class Airflow:
    """An installation with SQLite, whose scheduler runs until it is closed."""

    def __init__(self, home: Path) -> None:
        python, folder = str(Path(sys.executable).resolve()), str(home / "env")
        script = ["sh", "-ec", _INSTALL, "sh", python, folder]
        lock = "requirements/airflow.txt"
        subprocess.run([*script, lock], cwd=own_root(), check=True)
        self.home, self.dags = home, home / "dags"
        self.dags.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/execution/health"
        self.env = {
            **os.environ,
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": os.path.dirname(self.url),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        self.call("airflow", "db", "migrate")

    def call(self, *command: str) -> None:
        subprocess.run(command, env=self.env, check=True, capture_output=True)

    @contextmanager
    def scheduler(self) -> Iterator[None]:
        """Runs what schedules and runs tasks."""
        processes = []

        def start(name: str) -> None:
            log = (self.home / f"{name}.log").open("wb")
            own = subprocess.Popen(
                ["airflow", name],
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            processes.append(own)

        def answers() -> bool:
            with suppress(OSError), urllib.request.urlopen(self.url, timeout=60):
                return True
            return False

        try:
            start("api-server")
            wait_for(answers, "Airflow's server")
            start("dag-processor")
            start("scheduler")
            yield
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()

    def query(self, text: str) -> list[Any]:
        with closing(sqlite3.connect(self.home / "airflow.db")) as database:
            return database.execute(text).fetchall()

    def runs(self) -> list[dict[str, tuple[str, int]]]:
        """Returns state and number of tries by task, of each run."""
        found: dict[str, dict[str, tuple[str, int]]] = {}
        for run, task, *rest in self.query(_STATES):
            found.setdefault(run, {})[task] = (*rest,)
        return list(found.values())

    def wait_for_run(self, state: str, task: str) -> dict[str, tuple[str, int]]:
        """Waits for a run in which a task has a state, and returns its states."""

        def found() -> dict[str, tuple[str, int]]:
            for run in self.runs():
                others = {state for state, _ in run.values()}
                if run.get(task, ("", 0))[0] == state and others <= {*FINAL}:
                    return run
            return {}

        return wait_for(found, f"a run whose {task} is {state}", timeout_s=900)


def test_days_on_a_scheduler(empty_trips, tmp_path):
    trips, airflow = empty_trips, Airflow(tmp_path / "airflow")
    program = str(Path(sys.executable).with_name("sluice"))
    words = [program, "schedule", "print", "trips", "--as", "airflow"]
    words += ["--cron", "* * * * *", "--timezone", "UTC"]
    words += [word for item in SETTINGS for word in ("--set", item)]
    text = subprocess.check_output(words, cwd=trips.root, text=True)
    delay = "timedelta(minutes=5)"
    assert delay in text
    dag = airflow.dags / "trips.py"
    dag.write_text(text.replace(delay, "timedelta(seconds=1)"))
    airflow.call("python", "-W", "error", str(dag))
    trips.fill("span-1", start=1000)

    began = datetime.now(timezone.utc)
    with airflow.scheduler():
        wait_for(lambda: killed_in_training(trips), "the training", timeout_s=900)
        run = airflow.wait_for_run("success", "push")
        assert {task: state for task, (state, _) in run.items()} == dict.fromkeys(
            TASKS, "success"
        )
        assert [tries for _, tries in run.values()] == [1, 1, 2, 1]
        last = records(trips)[-1]
        assert outcome(last) == "pushed"

        run = airflow.wait_for_run("skipped", "data_gate")
        assert {state for state, _ in run.values()} == {"skipped"}

        trips.fill("span-2", start=2000, train=[b"damaged"] * 20)
        run = airflow.wait_for_run("failed", "data_gate")
        assert run.pop("data_gate") == ("failed", 1), "it fails the same way again"
        assert {state for state, _ in run.values()} == {"upstream_failed"}

    times = [
        [datetime.fromisoformat(text).replace(tzinfo=timezone.utc) for text in row]
        for row in airflow.query(_TIMES)
    ]
    assert times[0][0] > began - timedelta(minutes=1), "no run for what was missed"
    for (after, _, end), (later, start, _) in pairwise(times):
        assert after.second == 0 and after < later
        assert start >= end, "one run at a time"


def records(trips: Trips) -> list[RunRecord]:
    """Returns the records of the runs, oldest first."""
    folders = sorted((trips.workspace.root / "runs").glob("*/run.json"))
    return [RunRecord.load(path.parent) for path in folders]


def killed_in_training(trips: Trips) -> bool:
    """Kills the command of the task in which the model is trained."""
    found = records(trips)
    states = {node.id: node.state for record in found[-1:] for node in record.nodes}
    if states.get("Trainer") != "running":
        return False
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "retrain" in command and "ModelVerdict" in command:
            process.kill()
            return True
    return False
