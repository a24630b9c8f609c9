"""A server that answers what TensorFlow's client asks of Google Cloud Storage.

It has what TensorFlow's gcs_file_system.cc calls, and no more: metadata, listings by
page, reads of a range, resumable uploads, rewrites and removals. As in the service, an
object appears whole when its upload has ended, and a folder is only a prefix of names.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit

CUT = 0
"""As a status of ``fail``: the connection is cut in the middle of the answer."""

_API = "/storage/v1/b/"
_SESSION = "/upload/session/"


@dataclass(frozen=True)
class _Object:
    content: bytes
    generation: int
    updated: datetime


@dataclass
class _Session:
    """An upload on its way."""

    bucket: str
    name: str
    content: bytes = b""


@dataclass
class _Failure:
    method: str
    path: str
    status: int
    times: int


@dataclass(frozen=True)
class _Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


class FakeGcs:
    """Buckets in memory, the server in front of them, and a hand on both.

    Args:
      certificate: a PEM file with a certificate for both hosts, and its key.
      page_size: names on a page of a listing.
    """

    def __init__(self, certificate: str, page_size: int = 3) -> None:
        self._objects: dict[tuple[str, str], _Object] = {}
        self._buckets: set[str] = set()
        self._sessions: dict[str, _Session] = {}
        self._failures: list[_Failure] = []
        self._requests: list[str] = []
        self._page_size = page_size
        self._numbers = count(1)
        self._lock = threading.RLock()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server = _Server(("127.0.0.1", 443), self.answer, context)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def make_bucket(self, bucket: str) -> None:
        """Makes an empty bucket."""
        with self._lock:
            self._buckets.add(bucket)

    def put(self, bucket: str, name: str, content: bytes, age_s: float = 0) -> None:
        """Puts an object, written some seconds ago."""
        with self._lock:
            updated = datetime.now(timezone.utc).timestamp() - age_s
            self._objects[bucket, name] = _Object(
                content,
                next(self._numbers),
                datetime.fromtimestamp(updated, timezone.utc),
            )

    def get(self, bucket: str, name: str) -> bytes:
        """Returns an object's content."""
        return self._objects[bucket, name].content

    def remove(self, bucket: str, name: str) -> None:
        """Removes an object."""
        del self._objects[bucket, name]

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        """Returns the names of a bucket's objects, sorted."""
        with self._lock:
            return sorted(
                name
                for place, name in self._objects
                if place == bucket and name.startswith(prefix)
            )

    def fail(self, method: str, path: str, status: int, times: int = 1) -> None:
        """Lets the next requests whose path matches a regular expression fail."""
        with self._lock:
            self._failures.append(_Failure(method, path, status, times))

    def heal(self) -> None:
        """Forgets all failures that have not happened."""
        with self._lock:
            self._failures.clear()

    def requests(self) -> list[str]:
        """Returns and forgets the requests, as ``STATUS METHOD path?query``."""
        with self._lock:
            seen, self._requests = self._requests, []
            return seen

    def answer(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> _Answer:
        """Answers one request."""
        parts = urlsplit(url)
        query = {key: value[0] for key, value in parse_qs(parts.query).items()}
        with self._lock:
            failure = self._failure(method, unquote(url))
            if failure is not None and failure.status != CUT:
                answer = _Answer(failure.status, b"made to fail")
            else:
                answer = self._route(method, parts.path, query, headers, body)
                if failure is not None:
                    answer = _Answer(
                        answer.status, answer.body, answer.headers, is_cut=True
                    )
            self._requests.append(f"{answer.status} {method} {unquote(url)}")
        return answer

    def _failure(self, method: str, path: str) -> _Failure | None:
        for failure in self._failures:
            if failure.method == method and re.search(failure.path, path):
                failure.times -= 1
                if not failure.times:
                    self._failures.remove(failure)
                return failure
        return None

    def _route(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        headers: dict[str, str],
        body: bytes,
    ) -> _Answer:
        if path.startswith(_SESSION):
            return self._upload(path.removeprefix(_SESSION), headers, body)
        if path.startswith("/upload" + _API):
            bucket = path.removeprefix("/upload" + _API).split("/")[0]
            return self._begin_upload(bucket, query)
        if not path.startswith(_API):
            bucket, _, name = path[1:].partition("/")
            return self._read(bucket, unquote(name), headers)
        bucket, *rest = path.removeprefix(_API).split("/")
        if bucket not in self._buckets:
            return _Answer(404)
        if not rest:
            return _json({"location": "EUROPE-WEST4"})
        if rest == ["o"]:
            return self._list(bucket, query)
        return self._of_object(method, bucket, *map(unquote, rest[1:]))

    def _of_object(self, method: str, bucket: str, name: str, *more: str) -> _Answer:
        found = self._objects.get((bucket, name))
        if found is None:
            return _Answer(404, b"No such object")
        if method == "DELETE":
            del self._objects[bucket, name]
            return _Answer(204)
        if more:
            # rewriteTo, b, BUCKET, o, NAME
            self.put(more[2], more[4], found.content)
            return _json({"done": True})
        return _json(
            {
                "size": str(len(found.content)),
                "generation": str(found.generation),
                "updated": f"{found.updated:%Y-%m-%dT%H:%M:%S}"
                f".{found.updated.microsecond // 1000:03}Z",
            }
        )

    def _list(self, bucket: str, query: dict[str, str]) -> _Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        entries: dict[str, bool] = {}
        for name in self.names(bucket, prefix):
            inner, slash, _ = name[len(prefix) :].partition(delimiter or "\0")
            entries[prefix + inner + slash if slash else name] = bool(slash)
        after = query.get("pageToken", "")
        left = [name for name in entries if name > after]
        page = left[: min(self._page_size, int(query.get("maxResults", 1000)))]
        found: dict[str, object] = {"kind": "storage#objects"}
        if items := [{"name": name} for name in page if not entries[name]]:
            found["items"] = items
        if prefixes := [name for name in page if entries[name]]:
            found["prefixes"] = prefixes
        if len(left) > len(page):
            found["nextPageToken"] = page[-1]
        return _json(found)

    def _read(self, bucket: str, name: str, headers: dict[str, str]) -> _Answer:
        found = self._objects.get((bucket, name))
        if found is None:
            return _Answer(404, b"The specified key does not exist.")
        first, last = headers["range"].removeprefix("bytes=").split("-")
        if int(first) >= len(found.content):
            return _Answer(416, b"The requested range cannot be satisfied.")
        return _Answer(206, found.content[int(first) : int(last) + 1])

    def _begin_upload(self, bucket: str, query: dict[str, str]) -> _Answer:
        if bucket not in self._buckets:
            return _Answer(404)
        name = query["name"]
        if query["uploadType"] == "media":
            if (
                query.get("ifGenerationMatch") == "0"
                and (bucket, name) in self._objects
            ):
                return _Answer(412)
            self.put(bucket, name, b"")
            return _json({"name": name})
        session = str(next(self._numbers))
        self._sessions[session] = _Session(bucket, name)
        where = f"https://www.googleapis.com{_SESSION}{session}"
        return _Answer(headers={"Location": where})

    def _upload(self, number: str, headers: dict[str, str], body: bytes) -> _Answer:
        session = self._sessions.get(number)
        if session is None:
            return _Answer(404)
        given, _, total = headers.get("content-range", "bytes 0-0/0").partition("/")
        if not given.endswith("*"):
            session.content += body
        if len(session.content) < int(total):
            last = len(session.content) - 1
            return _Answer(
                308, headers={"Range": f"bytes=0-{last}"} if last > 0 else {}
            )
        self.put(session.bucket, session.name, session.content)
        return _json({"name": session.name})


def _json(value: object) -> _Answer:
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return _Answer(200, json.dumps(value).encode(), headers)


class _Server(ThreadingHTTPServer):
    """HTTPS on a port; each connection is a thread, its handshake included."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[str, str, dict[str, str], bytes], _Answer],
        context: ssl.SSLContext,
    ) -> None:
        super().__init__(address, _Handler)
        self.answer = answer
        self.context = context


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # An answer goes out in one piece, and at once; otherwise each takes 40 ms more.
    wbufsize = -1
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle_expect_100(self) -> bool:
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        # The client's uploads have both headers; RFC 9112 lets chunked win.
        if headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        else:
            body = self.rfile.read(int(headers.get("content-length", 0)))
        answer = self.server.answer(self.command, self.path, headers, body)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.is_cut:
            self.wfile.write(answer.body[: len(answer.body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(answer.body)
        self.wfile.flush()

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_PUT = do_POST = do_DELETE = _handle
