"""Emulator of ``gs://`` for child processes: one for all clients, with its own data.

    with GcsEmulator(folder, buckets=["bucket"]) as emulator:
        subprocess.run(command, env={**os.environ, **emulator.environment()})

In such a process google-cloud-storage, Beam and TensorFlow read and write the same
objects, which stay in the folder. It needs no root, no network and no credentials. The
server is a process of its own, as TensorFlow may hold the interpreter while it waits.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from sluice.project import own_root


class _Manager(BaseManager):
    """Calls the server's methods from other processes."""


_Manager.register("server")


class GcsEmulator:
    """A server while the ``with`` block runs.

    Args:
      root: folder of the objects; created if need be.
      buckets: to make.
      page_size: names on a page of a listing, at most.

    Attributes:
      server: calls the methods of ``GcsServer``, such as ``put`` and ``fail``.
    """

    server: Any

    def __init__(
        self, root: Path, buckets: Iterable[str] = (), page_size: int = 1000
    ) -> None:
        self._root = root
        self._buckets = buckets
        self._page_size = page_size

    def __enter__(self) -> GcsEmulator:
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-emulator-")
        key = secrets.token_hex()
        command = [sys.executable, "-m", __name__, str(self._root.absolute())]
        self._process = subprocess.Popen(
            [*command, self._folder.name, str(self._page_size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=own_root(),
            text=True,
            # Ctrl-C is for the process that waits for this one.
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        print(key, file=self._process.stdin, flush=True)
        if not self._process.stdout.readline():
            self.__exit__()
            raise OSError(f"the emulator of gs:// in {self._root} did not start")
        manager = _Manager(os.path.join(self._folder.name, "socket"), key.encode())
        manager.connect()
        self.server = manager.server()  # type: ignore[attr-defined]
        for bucket in self._buckets:
            self.server.make_bucket(bucket)
        self._address = self.server.address()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()  # Which ends it.
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def environment(self) -> dict[str, str]:
        """Returns the variables that lead a process to the emulator.

        All other hosts are out of its reach by https. ``token_uri`` of the credentials
        leads to the emulator as well.
        """
        here = "localhost,127.0.0.1"
        authority = os.path.join(self._folder.name, "ca.pem")
        return {
            "STORAGE_EMULATOR_HOST": self._address,
            # TensorFlow knows only https://www.googleapis.com. See curl_http_request.cc
            # and google_auth_provider.cc in tensorflow/core/platform/cloud.
            "https_proxy": self._address,
            "HTTPS_PROXY": self._address,
            "no_proxy": here,
            "NO_PROXY": here,
            "CURL_CA_BUNDLE": authority,
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "emulated",
            "GOOGLE_APPLICATION_CREDENTIALS": os.path.join(
                self._folder.name, "credentials.json"
            ),
            "GOOGLE_CLOUD_PROJECT": "emulated",
            "NO_GCE_CHECK": "true",
        }


def _main() -> None:
    from runners.rehearsal.gcs_server import GcsServer

    root, folder, page_size = sys.argv[1:]
    key = sys.stdin.readline().strip()
    served = GcsServer(Path(root), Path(folder), int(page_size))
    _Manager.register("server", callable=lambda: served)
    manager = _Manager(os.path.join(folder, "socket"), key.encode())
    server = manager.get_server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    # Until the parent closes it, or is gone.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
