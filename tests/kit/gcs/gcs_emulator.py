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

from sluice.errors import WorkspaceError
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
        """Starts the server.

        Raises:
          WorkspaceError: it cannot write its files, or finds no free port.
        """
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="sluice-emulator-")
        except OSError as error:
            raise self._not_started(str(error)) from error
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
        if not self._address.startswith("http://"):
            self.__exit__()
            raise self._not_started(self._address or "its process ended")
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()  # Which ends it.
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def _not_started(self, why: str) -> WorkspaceError:
        return WorkspaceError(
            "the emulator of gs:// did not start", where=self._root, actual=why
        )

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
    try:
        store = ObjectStore(Path(root))
        for bucket in buckets:
            store.make_bucket(bucket)
        answer = pkgutil.resolve_name(api)(store).answer
        server = Server(answer, make_certificate(Path(folder)))
        token_uri = f"{server.address}/token"
        write_credentials(Path(folder, "credentials.json"), token_uri)
    except OSError as error:
        print(error, flush=True)
        return
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.address, flush=True)
    # Until the parent closes it, or is gone.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _main()
