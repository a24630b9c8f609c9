"""The emulator's server, with faults to order: a throttled, cut or stale answer."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from runners.rehearsal.certificate import make_certificate, write_credentials
from runners.rehearsal.gcs_api import TOKEN, GcsApi
from runners.rehearsal.gcs_objects import ObjectStore, StoredObject
from runners.rehearsal.http_server import (
    Failure,
    Request,
    Response,
    Server,
    error_response,
    next_failure,
)

CUT = 0
"""Status for ``fail``: the connection is closed in the middle of the response."""
LOST = -1
"""Status for ``fail``: the request is executed, but its response is a 503."""
STALE = -2
"""Status for ``fail``: a listing lacks the object that was written last."""


class GcsServer:
    """Buckets in a folder, and an HTTP server for them.

    Args:
      root: the folder; created if need be.
      secrets: folder for the server's certificate and the clients' credentials.
      page_size: names on a page of a listing, at most.
    """

    def __init__(self, root: Path, secrets: Path, page_size: int) -> None:
        self._store = ObjectStore(root)
        self._failures: list[Failure] = []
        self._requests: list[str] = []
        self._api = GcsApi(self._store, page_size)
        self._lock = threading.Lock()
        self._server = Server(self.answer, make_certificate(secrets))
        write_credentials(secrets / "credentials.json", self.address() + TOKEN)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def address(self) -> str:
        """Returns the value of ``STORAGE_EMULATOR_HOST``."""
        return self._server.address

    def make_bucket(self, bucket: str) -> None:
        """Makes an empty bucket, if there is none."""
        self._store.make_bucket(bucket)

    def put(
        self,
        bucket: str,
        name: str,
        content: bytes,
        age_s: float = 0,
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Puts an object, written some seconds ago."""
        self._store.put(bucket, name, content, metadata or {}, age_s)

    def get(self, bucket: str, name: str) -> bytes:
        """Returns an object's content."""
        return self._store.content(self._found(bucket, name))

    def remove(self, bucket: str, name: str) -> None:
        """Removes an object."""
        self._store.remove(self._found(bucket, name))

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        """Returns the names of a bucket's objects, sorted."""
        return [found.name for found in self._store.below(bucket, prefix)]

    def fail(
        self, method: str, path: str, status: int, times: int = 1, delay_s: float = 0
    ) -> None:
        """Makes the next requests fail whose path matches a regular expression.

        Args:
          method: such as "GET".
          path: matched against path and query, unquoted.
          status: of HTTP, or ``CUT``, ``LOST`` or ``STALE``; 200 to be only slow.
          times: number of requests.
          delay_s: before each answer.
        """
        with self._lock:
            self._failures.append(Failure(method, path, status, times, delay_s=delay_s))

    def heal(self) -> None:
        """Removes all pending failures."""
        with self._lock:
            self._failures.clear()

    def requests(self) -> list[str]:
        """Returns and clears the requests, as ``STATUS METHOD path?query``."""
        with self._lock:
            seen, self._requests = self._requests, []
            return seen

    def answer(self, request: Request) -> Response:
        """Returns the response to one request."""
        shown = unquote(request.url) + _uploaded_name(request)
        with self._lock:
            failure = next_failure(self._failures, request.method, shown)
        if failure is not None:
            time.sleep(failure.delay_s)
        if failure is not None and failure.status > 200:
            answer = error_response(failure.status, "made to fail")
        else:
            answer = self._api.answer(
                request, is_stale=failure is not None and failure.status == STALE
            )
            if failure is not None and failure.status == LOST:
                answer = error_response(503, "made to fail")
            elif failure is not None and failure.status == CUT:
                answer = replace(answer, is_cut=True)
        with self._lock:
            self._requests.append(f"{answer.status} {request.method} {shown}")
        return answer

    def _found(self, bucket: str, name: str) -> StoredObject:
        found = self._store.find(bucket, name)
        if found is None:
            raise KeyError(f"gs://{bucket}/{name}")
        return found


def _uploaded_name(request: Request) -> str:
    """Returns the object's name in an upload's body as a query parameter."""
    if not request.url.startswith("/upload/"):
        return ""
    found = re.search(rb'"name": "([^"]*)"', request.body[:10_000])
    return f"&name={found[1].decode()}" if found else ""
