"""The emulator's server: buckets in a folder, behind HTTP and a proxy for HTTPS."""

from __future__ import annotations

import threading
from pathlib import Path

from runners.rehearsal.certificate import make_certificate, write_credentials
from runners.rehearsal.gcs_api import TOKEN, GcsApi
from runners.rehearsal.gcs_objects import ObjectStore
from runners.rehearsal.http_server import Request, Response, Server


class GcsServer:
    """Buckets in a folder, and an HTTP server for them.

    Args:
      root: the folder; created if need be.
      secrets: folder for the server's certificate and the clients' credentials.
    """

    def __init__(self, root: Path, secrets: Path) -> None:
        self.store = ObjectStore(root)
        self.api = GcsApi(self.store)
        self._server = Server(self.answer, make_certificate(secrets))
        write_credentials(secrets / "credentials.json", self.address() + TOKEN)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def address(self) -> str:
        """Returns the value of ``STORAGE_EMULATOR_HOST``."""
        return self._server.address

    def make_bucket(self, bucket: str) -> None:
        """Makes an empty bucket, if there is none."""
        self.store.make_bucket(bucket)

    def answer(self, request: Request) -> Response:
        """Returns the response to one request."""
        return self.api.answer(request)
