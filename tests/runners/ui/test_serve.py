"""``sluice ui`` as a process: it starts quickly, says where it is, and ends cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runners.local.processes.zygote import python_command
from sluice.project import own_root

pytestmark = pytest.mark.unit


@contextmanager
def ui(
    cwd: Path, *options: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], dict]]:
    """Starts it on a free port; yields the process and what it prints."""
    line = python_command("runners.cli.main", "ui", "--port=0", "--json", *options)
    process = subprocess.Popen(
        line,
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


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)]
)
def test_a_signal_ends_it_while_a_page_is_open(
    written: Any, number: int, code: int
) -> None:
    written.fail(written.FIRST)
    with ui(written.root) as (process, printed):
        url, _, token = printed["url"].partition("/login?token=")
        assert token == printed["token"]
        with urllib.request.urlopen(printed["url"], timeout=60) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, timeout=60)
        headers = {"Cookie": cookie, "Accept": "text/event-stream"}
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as stream:
            assert stream.readline() == b"event: content\n"
            process.send_signal(number)
            assert process.wait(30) == code
            rest = stream.read().decode()
        assert "digits" in rest
        _, err = process.communicate()
        assert err == ""


def test_the_browser_gets_a_ticket_that_is_valid_once(
    written: Any, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """Its command line, which other users can read, does not have the token."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {opened}.new; mv {opened}.new {opened}\n'
    )
    browser.chmod(0o755)
    with ui(written.root, "--open", BROWSER=str(browser)) as (_, printed):
        wait_for(opened.exists, "the browser")
        url = opened.read_text().strip()
        assert printed["token"] not in url
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert printed["token"] in answer.headers["Set-Cookie"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, timeout=60)


def test_no_tensorflow_is_imported() -> None:
    script = (
        "import sys, runners.cli.ui\n"
        "print({'tensorflow', 'tfx', 'apache_beam', 'tensorboard', 'ml_metadata'}"
        " & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=own_root(), capture_output=True, text=True
    )
    assert done.stdout == "set()\n", done.stderr


def test_a_port_in_use(sluice: Callable[..., Any], written: Any) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, out, err = sluice("ui", "--port", str(port))
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: port {port} of 127.0.0.1 cannot be used",
        "  found:    Address already in use",
        "  try:      sluice ui --port 0   (any free port)",
    ]


def test_other_machines_cannot_connect(written: Any) -> None:
    with ui(written.root) as (_, printed):
        port = int(printed["url"].split("/")[2].rpartition(":")[2])
        listening = Path("/proc/net/tcp").read_text()
        assert f"0100007F:{port:04X} 00000000:0000 0A" in listening
        assert f"00000000:{port:04X} 00000000:0000 0A" not in listening
