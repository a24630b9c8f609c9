"""Emulator of ``gs://`` for child processes: one for all clients, with its own data.

    with GcsEmulator(folder, buckets=["bucket"]) as emulator:
        subprocess.run(command, env={**os.environ, **emulator.environment()})

In such a process google-cloud-storage, Beam and TensorFlow read and write the same
objects, which end with it. It needs no root, no network and no credentials. The
server is a process of its own, as TensorFlow may hold the interpreter while it waits.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from sluice.project import own_root


class GcsEmulator:
    """A server while the ``with`` block runs.

    Args:
      root: folder of the contents of objects; created if need be.
      buckets: to make.
      api: the class that answers requests about an ``ObjectStore``.
    """

    def __init__(
        self,
        root: Path,
        buckets: Iterable[str] = (),
        api: str = "tests.kit.gcs.gcs_api.GcsApi",
    ) -> None:
        self._root = root
        self._buckets = buckets
        self._api = api

    def __enter__(self) -> GcsEmulator:
        """Starts the server."""
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-emulator-")
        command = [sys.executable, "-m", __name__, str(self._root.absolute())]
        self._process = subprocess.Popen(
            [*command, self._folder.name, self._api, *self._buckets],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=own_root(),
            text=True,
            # Ctrl-C is for the process that waits for this one.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._address = self._process.stdout.readline().strip()
        assert self._address.startswith("http://"), "its process ended"
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
    from tests.kit.gcs.certificate import make_certificate, write_credentials
    from tests.kit.gcs.gcs_objects import ObjectStore
    from tests.kit.gcs.http_server import Server

    root, folder, api, *buckets = sys.argv[1:]
    store = ObjectStore(Path(root))
    for bucket in buckets:
        store.make_bucket(bucket)
    answer = pkgutil.resolve_name(api)(store).answer
    server = Server(answer, make_certificate(Path(folder)))
    token_uri = f"{server.address}/token"
    write_credentials(Path(folder, "credentials.json"), token_uri)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.address, flush=True)
    # Until the parent closes it, or is gone.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
