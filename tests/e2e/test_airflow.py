"""The DAG of ``schedule print``, run by a real Airflow."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from runners.operations import print_schedule
from sluice.project import own_root

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

_INSTALL = """
. setup/uv.sh && provide_uv
"$UV" venv --quiet --python "$1" "$2"
"$UV" pip install --quiet --python "$2/bin/python" --require-hashes -r "$3"
"""
# Airflow's database, read without Airflow: the states of the last run.
_STATES = """
SELECT task_id, state FROM task_instance
WHERE run_id = (SELECT run_id FROM dag_run ORDER BY id DESC LIMIT 1)
"""


def test_exit_codes_are_states_of_tasks(tmp_path: Path) -> None:
    """What trained, found nothing to do, and fails the same way again."""
    python, folder = str(Path(sys.executable).resolve()), str(tmp_path / "env")
    script = ["sh", "-ec", _INSTALL, "sh", python, folder, "requirements/airflow.txt"]
    subprocess.run(script, cwd=own_root(), check=True)
    config = load_config("digits", overrides=["retrain.min_new_examples=1"])
    command = ["sh", "-c", 'echo "$@"; exit "$CODE"', "sluice"]
    (tmp_path / "dags").mkdir()
    dag = print_schedule._airflow(config, command, "0 3 * * *", "UTC")
    (tmp_path / "dags" / "digits.py").write_text(dag)
    environment = {
        **os.environ,
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }

    def states(code: int, *words: str) -> list[str]:
        subprocess.run(words, env={**environment, "CODE": str(code)}, check=code != 3)
        with closing(sqlite3.connect(tmp_path / "airflow.db")) as database:
            found = dict(database.execute(_STATES).fetchall())
        return [found[x] for x in ("data_gate", "retrain_gate", "model_gate", "push")]

    subprocess.run(["airflow", "db", "migrate"], env=environment, check=True)
    test = "airflow", "dags", "test", "sluice_digits"
    assert states(0, *test) == ["success"] * 4
    assert states(99, *test) == ["skipped"] * 4
    assert states(3, *test) == ["failed", *["upstream_failed"] * 3]
