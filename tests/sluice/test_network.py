"""A command finds out at once that there is no network; a node leaves it to clients."""

import socket

import pytest
import requests

from sluice import network

pytestmark = pytest.mark.unit

# Nothing listens there.
NOWHERE = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def in_a_command(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GCE_METADATA_TIMEOUT", "1")
    monkeypatch.setattr(network, "_is_command", False)
    network.begin_command()


def test_a_server_is_reached_directly_or_by_a_proxy(monkeypatch):
    with pytest.raises(requests.ConnectionError, match=r"no connection to 127.0.0.1"):
        network.require_connection(f"https://{NOWHERE}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        network.require_connection(f"https://{address}/path")
        monkeypatch.setenv("https_proxy", f"http://{address}")
        network.require_connection("https://service.invalid")
        monkeypatch.setenv("https_proxy", f"http://{NOWHERE}")
        with pytest.raises(requests.ConnectionError):
            network.require_connection("https://service.invalid")


def test_a_node_does_not_ask(monkeypatch):
    monkeypatch.setattr(network, "_is_command", False)
    network.require_connection(f"https://{NOWHERE}")
