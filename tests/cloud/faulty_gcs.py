"""The emulator of ``gs://``, to look at and to make fail: throttled and cut answers."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, replace
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.kit.gcs.gcs_api import GcsApi
from tests.kit.gcs.gcs_objects import ObjectStore, StoredObject
from tests.kit.gcs.http_server import Request, Response, error_response

FAULTY_GCS = f"{__name__}.FaultyGcs"
"""Argument ``api`` of ``GcsEmulator``."""

CUT = 0
"""Status for ``fail``: the connection is closed in the middle of the response."""
LOST = -1
"""Status for ``fail``: the request is executed, but its response is a 503."""


_KEY, _PORT_FILE = b"of the tests", "port"


@dataclass
class _Failure:
    """A failure of the next requests that match a regular expression."""

    method: str
    path: str
    status: int
    times: int


class _Manager(BaseManager):
    """Calls the methods of ``FaultyGcs`` from other processes."""


_Manager.register("faulty_gcs")


def control(root: Path) -> Any:
    """Returns the ``FaultyGcs`` of the emulator whose contents are in a folder."""
    port = int((root / _PORT_FILE).read_text())
    manager = _Manager(("127.0.0.1", port), _KEY)
    manager.connect()
    return manager.faulty_gcs()  # type: ignore[attr-defined]


class FaultyGcs:
    """The API, with faults to order; a page of its listings has three names."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._api = GcsApi(store)
        self._api.page_size = 3
        self._failures: list[_Failure] = []
        self._requests: list[str] = []
        self._lock = threading.Lock()
        _Manager.register("faulty_gcs", callable=lambda: self)
        server = _Manager(("127.0.0.1", 0), _KEY).get_server()
        (store.root / _PORT_FILE).write_text(str(server.address[1]))
        threading.Thread(target=server.serve_forever, daemon=True).start()

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

    def fail(self, method: str, path: str, status: int, times: int = 1) -> None:
        """Makes the next requests fail whose path matches a regular expression.

        Args:
          method: such as "GET".
          path: matched against path and query, unquoted.
          status: of HTTP, or ``CUT`` or ``LOST``.
          times: number of requests.
        """
        with self._lock:
            self._failures.append(_Failure(method, path, status, times))

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
        failure = self._next_failure(request.method, shown)
        if failure is not None and failure.status > 200:
            answer = error_response(failure.status, "made to fail")
        else:
            answer = self._api.answer(request)
            if failure is not None and failure.status == LOST:
                answer = error_response(503, "made to fail")
            elif failure is not None and failure.status == CUT:
                answer = replace(answer, is_cut=True)
        with self._lock:
            self._requests.append(f"{answer.status} {request.method} {shown}")
        return answer

    def _next_failure(self, method: str, path: str) -> _Failure | None:
        with self._lock:
            for failure in self._failures:
                is_meant = failure.method == method and failure.times > 0
                if is_meant and re.search(failure.path, path):
                    failure.times -= 1
                    return failure
        return None

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
