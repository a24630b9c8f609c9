"""Whether a server can be reached, asked before the first request of a command.

Clients of services repeat a request for half a minute and longer, as nodes need it.
Somebody without a network is told at once.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

# For so long a command waits for a connection.
CONNECT_S = 4.0
_is_command = False


def begin_command() -> None:
    """Makes this process check its connections; those of nodes do not."""
    global _is_command
    _is_command = True
    # Without credentials, google-auth looks for a machine of Google's three times.
    os.environ.setdefault("GCE_METADATA_TIMEOUT", "1")


def require_connection(url: str) -> None:
    """Checks in a command that the server of a URL, or the proxy to it, accepts one.

    Raises:
      requests.ConnectionError: it does not.
    """
    if not _is_command:
        return
    # Commands that ask no service do without.
    import socket

    import requests
    from requests.utils import get_environ_proxies, select_proxy

    place = urlsplit(select_proxy(url, get_environ_proxies(url)) or url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname, port), CONNECT_S).close()
    except OSError as error:
        raise requests.ConnectionError(
            f"no connection to {place.hostname}: is the network there?"
        ) from error
