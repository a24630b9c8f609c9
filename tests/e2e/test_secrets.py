"""A secret is used by the nodes of a run, and is in no file of the workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

MARKER = "hunter2-b7d1c9"
_MODEL = f"""
import logging
import os

from pipeline.training.models import dense


def build_model(inputs, params):
    token, fails = params.pop("token"), params.pop("fails", False)
    assert token == "Bearer {MARKER}", "not resolved"
    print("printed", token)
    logging.warning("logged %s", token)
    # Not when the run checks the model before its first node.
    if fails and "SLUICE_PROGRESS_FILE" in os.environ:
        raise ValueError(f"refused: {{token}}")
    return dense.build_model(inputs, params)
"""


_NODE = f"""
import os
import subprocess

from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component


@component
def Notify(token: Parameter[str], escaped: Parameter[str]):
    assert token == "Bearer {MARKER}", "not resolved"
    assert escaped == "$" + "{{env:DEMO_TOKEN}}"
    print("notified with", token)
    os.write(1, f"native {{token}}\\n".encode())
    subprocess.run(["echo", "subprocess", token], check=True)
"""
_NODES = (
    "nodes={Notify: {component: secret_node:Notify, parameters: "
    "{token: 'Bearer ${env:DEMO_TOKEN}', escaped: '$${env:DEMO_TOKEN}'}}}"
)


@pytest.fixture(scope="module")
def with_model(project: Path) -> Path:
    (project / "secret_model.py").write_text(_MODEL)
    (project / "secret_node.py").write_text(_NODE)
    return project


@pytest.fixture
def run(
    with_model: Path, fork_command: Callable[..., Any]
) -> Callable[..., CompletedProcess[str]]:
    """Runs digits with parameters of the model, and some environment variables."""

    def run(params: str, **environment: str) -> CompletedProcess[str]:
        return fork_command(
            *("run", "digits", "--profile", "quick", "--json"),
            *("--workspace", "secrets"),
            *("--set", "evaluate.thresholds=[]"),
            *("--set", "model=secret_model:build_model"),
            *("--set", f"model_params={params}"),
            *("--set", _NODES),
            cwd=with_model,
            **environment,
        ).completed()

    return run


def _files_with_marker(folder: Path) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and MARKER.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_a_secret_is_used_and_written_nowhere(with_model, run, fails):
    params = f"{{token: 'Bearer ${{env:DEMO_TOKEN}}', fails: {str(fails).lower()}}}"
    done = run(params, DEMO_TOKEN=MARKER)

    record = json.loads(done.stdout)
    states = {node["id"]: node["state"] for node in record["nodes"]}
    assert states["Notify"] == ("cached" if fails else "ran")
    assert states["Trainer"] == ("failed" if fails else "ran"), done.stderr
    run_dir = with_model / "secrets" / "digits" / "runs" / record["run_id"]
    if not fails:
        log = (run_dir / "logs" / "Notify.log").read_text()
        assert "native Bearer ${env:DEMO_TOKEN}" in log
        assert "subprocess Bearer ${env:DEMO_TOKEN}" in log
    log = (run_dir / "logs" / "Trainer.log").read_text()
    assert "printed Bearer ${env:DEMO_TOKEN}" in log
    assert "logged Bearer ${env:DEMO_TOKEN}" in log
    if fails:
        assert "refused: Bearer ${env:DEMO_TOKEN}" in done.stdout
    assert "printed Bearer ${env" in (run_dir / "logs" / "start.log").read_text()
    assert MARKER not in done.stdout + done.stderr
    assert _files_with_marker(with_model / "secrets") == []


def test_a_run_does_not_begin_without_the_variable(run):
    done = run("{token: '${env:DEMO_TOKEN_UNSET}'}")

    assert done.returncode == 2
    assert "DEMO_TOKEN_UNSET is not set" in done.stdout + done.stderr
