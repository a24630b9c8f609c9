"""What an engine's job says when it fails, and what a worker pool accepts."""

from __future__ import annotations

import json
import os
import signal

import pytest

from sluice import engine_runner
from sluice.errors import NodeError, RemoteError
from sluice.worker_pool import refusal

pytestmark = pytest.mark.tf
_IN_WORKER = """Pipeline app_1 failed in state FAILED: java.lang.RuntimeException: \
Error received from SDK harness for instruction 5: Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1501, in process
  File "/project/mine.py", line 3, in scale
    raise ValueError("no fare")
ValueError: no fare [while running 'Map(scale)']
"""


@pytest.mark.parametrize(
    ("message", "expected", "text"),
    [
        (
            "Pipeline app_1 failed in state FAILED: java.util.concurrent."
            "TimeoutException: Timeout has occurred: 30000 ms",
            NodeError,
            "the engine says: java.util.concurrent.TimeoutException: Timeout has "
            "occurred: 30000 ms\n  try:      it had no free slots: set beam.workers "
            "to fewer, or cancel other jobs",
        ),
        (
            "Pipeline app_1 failed in state FAILED: java.lang.OutOfMemoryError: heap",
            NodeError,
            "the engine says: java.lang.OutOfMemoryError: heap",
        ),
        (
            _IN_WORKER,
            RuntimeError,
            "ValueError: no fare [while running 'Map(scale)']",
        ),
    ],
)
def test_reason(message, expected, text):
    error = engine_runner.explained(message)
    assert type(error) is expected
    assert str(error) == text


def test_a_pool_takes_what_it_can_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_SHARED_PATHS", f"{tmp_path}\n{tmp_path}/run")
    (tmp_path / "run").mkdir()
    told = engine_runner.request_parameters("cloudpickle")
    assert refusal(told) == ""
    other = {**engine_runner.versions(), "tfx": "1.0"}
    assert refusal({**told, "versions": json.dumps(other)}).endswith(
        "(the node has 1.0)"
    )
    assert "has no /nowhere:" in refusal({**told, "project": "/nowhere"})
    (tmp_path / "run").rmdir()
    assert f"has no {tmp_path}/run:" in refusal(told)


def test_a_pool_of_another_version_is_refused(
    fork_command, tmp_path, wait_for, monkeypatch
):
    from tests.kit.ports import free_ports

    address = f"127.0.0.1:{free_ports(1)[0]}"
    port = address.partition(":")[2]
    command = fork_command("beam-workers", "--port", port, cwd=tmp_path)
    wait_for(lambda: "ready" in command.printed()[0], "the worker pool")
    try:
        engine_runner.require_worker_pool(address)
        monkeypatch.setattr(engine_runner, "__version__", "0.0.1")
        with pytest.raises(RemoteError, match=r"other versions: sluice .*0\.0\.1"):
            engine_runner.require_worker_pool(address)
    finally:
        os.kill(command.pid, signal.SIGTERM)
        command.wait()
