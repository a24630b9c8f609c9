"""A secret of the config is used by a real run, and stands nowhere in the workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.e2e

MARKER = "hunter2-b7d1c9"
_MODEL = f"""
import logging

from pipeline.training.models import dense


def build_model(inputs, params):
    token, fails = params.pop("token"), params.pop("fails", False)
    assert token == "Bearer {MARKER}", "not resolved"
    print("printed", token)
    logging.warning("logged %s", token)
    if fails:
        raise ValueError(f"refused: {{token}}")
    return dense.build_model(inputs, params)
"""


_NODE = f"""
from tfx.dsl.component.experimental.annotations import Parameter
from tfx.dsl.component.experimental.decorators import component


@component
def Notify(token: Parameter[str], escaped: Parameter[str]):
    assert token == "Bearer {MARKER}", "not resolved"
    assert escaped == "$" + "{{env:DEMO_TOKEN}}"
    print("notified with", token)
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


def _run(
    root: Path, params: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, str(own_root() / "runners/cli/main.py"), "run", "digits"),
            *("--profile", "quick", "--json", "--workspace", "secrets"),
            *("--set", "evaluate.thresholds=[]"),
            *("--set", "model=secret_model:build_model"),
            *("--set", f"model_params={params}"),
            *("--set", _NODES),
        ],
        cwd=root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def _files_with_marker(folder: Path) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and MARKER.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_a_secret_is_used_and_written_nowhere(with_model: Path, fails: bool) -> None:
    params = f"{{token: 'Bearer ${{env:DEMO_TOKEN}}', fails: {str(fails).lower()}}}"
    done = _run(with_model, params, DEMO_TOKEN=MARKER)

    record = json.loads(done.stdout)
    states = {node["id"]: node["state"] for node in record["nodes"]}
    assert states["Notify"] == ("cached" if fails else "ran")
    assert states["Trainer"] == ("failed" if fails else "ran"), done.stderr
    run_dir = with_model / "secrets" / "digits" / "runs" / record["run_id"]
    log = (run_dir / "logs" / "Trainer.log").read_text()
    assert "printed Bearer ${env:DEMO_TOKEN}" in log
    assert "logged Bearer ${env:DEMO_TOKEN}" in log
    if fails:
        assert "refused: Bearer ${env:DEMO_TOKEN}" in done.stdout
    assert MARKER not in done.stdout + done.stderr
    assert _files_with_marker(with_model / "secrets") == []


def test_a_run_does_not_begin_without_the_variable(with_model: Path) -> None:
    done = _run(with_model, "{token: '${env:DEMO_TOKEN_UNSET}'}")

    assert done.returncode == 2
    assert "DEMO_TOKEN_UNSET is not set" in done.stdout + done.stderr
