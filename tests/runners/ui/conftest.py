"""The pages of the local server, called in this process or served by another one."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from runners.ui.server import make_app
from sluice.project import own_root

TOKEN, COOKIE, ORIGIN = "secret", "sluice_ui", "http://127.0.0.1:8265"


@pytest.fixture(scope="session")
def call_ui():
    """Returns a client of the project in the current directory, in a session of it."""

    def call_ui():
        return TestClient(
            make_app(TOKEN, COOKIE), base_url=ORIGIN, cookies={COOKIE: TOKEN}
        )

    return call_ui


@pytest.fixture(scope="session")
def start_ui():
    """Starts ``sluice ui`` on a free port: ``(cwd, **variables)``, a context manager.

    It yields the process and what it has printed.
    """

    @contextmanager
    def start_ui(cwd, **variables):
        process = subprocess.Popen(
            [Path(sys.executable).with_name("sluice"), "ui", "--port=0", "--json"],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(own_root()), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()
            process.communicate()

    return start_ui
