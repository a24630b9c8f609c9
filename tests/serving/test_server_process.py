"""The process of a server: what it prints, and how it ends."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.half_plus_two import save_half_plus_two

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("tf")]
COMMAND = [sys.executable, "-m", "serving.server", "--model"]


def start(directory: Path, *wrapper: str) -> subprocess.Popen:
    command = [*wrapper, *COMMAND, f"digits={directory}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def server(image_model_dir):
    process = start(image_model_dir)
    assert process.stdout
    yield process, json.loads(process.stdout.readline())
    process.kill()


def test_answers_and_ends_with_sigterm(server):
    process, ready = server
    assert ready.keys() == {"port", "grpc_port", "load_s"}
    url = f"http://127.0.0.1:{ready['port']}/v1/models/digits"
    status = json.load(urllib.request.urlopen(url))["model_version_status"]
    assert [(item["version"], item["state"]) for item in status] == [("1", "AVAILABLE")]
    modules = Path(f"/proc/{process.pid}/maps").read_text()
    assert "tensorflow" in modules and "tfx_bsl" not in modules
    process.send_signal(signal.SIGTERM)
    assert (process.wait(10), process.stdout.read()) == (0, "")


def test_sigterm_finishes_what_is_under_way(tf, tmp_path):
    process = start(save_half_plus_two(tmp_path / "1"))
    assert process.stdout
    port = json.loads(process.stdout.readline())["port"]
    url = f"http://127.0.0.1:{port}/v1/models/digits:predict"
    body = b'{"signature_name": "slow", "instances": [1.0]}'
    with ThreadPoolExecutor(1) as client:
        asked = client.submit(urllib.request.urlopen, url, body)
        time.sleep(0.3)
        is_under_way = not asked.done()
        process.send_signal(signal.SIGTERM)
        assert json.load(asked.result()) == {"predictions": [1.0]}
    assert is_under_way and process.wait(10) == 0
