"""``sluice ui`` as a process: it says where it is, and ends cleanly."""

import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit


def test_a_signal_ends_it(written, start_ui):
    written.fail(written.FIRST)
    with start_ui(written.root) as (process, printed):
        url, _, token = printed["url"].partition("?token=")
        assert token == printed["token"]
        port = int(url.strip("/").rpartition(":")[2])
        # Other machines cannot connect.
        listening = Path("/proc/net/tcp").read_text()
        assert f"0100007F:{port:04X} 00000000:0000 0A" in listening
        assert f"00000000:{port:04X} 00000000:0000 0A" not in listening
        with urllib.request.urlopen(printed["url"], timeout=60) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        assert cookie == f"sluice_ui_{port}={token}"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url, timeout=60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        assert process.communicate()[1] == ""


def test_a_port_in_use(sluice, written):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, out, err = sluice("ui", "--port", str(port))
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"error: port {port} of 127.0.0.1 cannot be used",
        "  found:    Address already in use",
        "  try:      sluice ui --port 0   (any free port)",
    ]
