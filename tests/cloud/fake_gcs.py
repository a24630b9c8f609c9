"""A server that answers what Google's storage client asks, as the service does.

It has metadata, listings by page, reads of a range, multipart and resumable uploads,
rewrites and removals, generations, and the preconditions on them. As in the service, an
object appears whole when its upload has ended, and a folder is only a prefix of names.
``STORAGE_EMULATOR_HOST`` leads the client here.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

CUT = 0
"""As a status of ``fail``: the connection is cut in the middle of the answer."""
LOST = -1
"""As a status of ``fail``: the request is carried out, but its answer is a 503."""

_API = "/storage/v1/b/"
_SESSION = "/upload/session/"


@dataclass(frozen=True)
class _Object:
    content: bytes
    generation: int
    updated: datetime
    metadata: dict[str, str]


@dataclass
class _Session:
    """An upload on its way."""

    bucket: str
    name: str
    query: dict[str, str]
    metadata: dict[str, str]
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
      page_size: names on a page of a listing.
    """

    def __init__(self, page_size: int = 3) -> None:
        self._objects: dict[tuple[str, str], _Object] = {}
        self._buckets: set[str] = set()
        self._sessions: dict[str, _Session] = {}
        self._failures: list[_Failure] = []
        self._requests: list[str] = []
        self._page_size = page_size
        self._numbers = count(1)
        self._lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), self.answer)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def address(self) -> str:
        """Returns the value of ``STORAGE_EMULATOR_HOST``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def make_bucket(self, bucket: str) -> None:
        """Makes an empty bucket."""
        with self._lock:
            self._buckets.add(bucket)

    def put(
        self,
        bucket: str,
        name: str,
        content: bytes,
        age_s: float = 0,
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Puts an object, written some seconds ago."""
        with self._lock:
            updated = datetime.now(timezone.utc).timestamp() - age_s
            self._objects[bucket, name] = _Object(
                content,
                next(self._numbers),
                datetime.fromtimestamp(updated, timezone.utc),
                metadata or {},
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
            shown = unquote(url) + _uploaded_name(parts.path, body)
            failure = self._failure(method, shown)
            if failure is not None and failure.status > 0:
                answer = _error(failure.status, "made to fail")
            else:
                answer = self._route(method, parts.path, query, headers, body)
                if failure is not None and failure.status == LOST:
                    answer = _error(503, "made to fail")
                elif failure is not None:
                    answer = _Answer(
                        answer.status, answer.body, answer.headers, is_cut=True
                    )
            self._requests.append(f"{answer.status} {method} {shown}")
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
            return self._continue_upload(path.removeprefix(_SESSION), headers, body)
        kind, _, below = path.partition(_API)
        bucket, *rest = below.split("/")
        if bucket not in self._buckets:
            return _error(404, "The specified bucket does not exist.")
        if kind == "/upload":
            return self._upload(bucket, query, headers, body)
        if rest == ["o"]:
            return self._list(bucket, query)
        if rest[0] != "o":
            return _error(400, "unknown request")
        return self._of_object(method, bucket, query, headers, *map(unquote, rest[1:]))

    def _of_object(
        self,
        method: str,
        bucket: str,
        query: dict[str, str],
        headers: dict[str, str],
        name: str,
        *more: str,
    ) -> _Answer:
        found = self._objects.get((bucket, name))
        wanted = query.get("generation")
        if found is None or wanted not in (None, str(found.generation)):
            return _error(404, f"No such object: {bucket}/{name}")
        if refused := self._refused(bucket, name, query):
            return refused
        if method == "DELETE":
            del self._objects[bucket, name]
            return _Answer(204)
        if more:
            # rewriteTo, b, BUCKET, o, NAME
            self.put(more[2], more[4], found.content)
            size = str(len(found.content))
            return _json(
                {
                    "kind": "storage#rewriteResponse",
                    "done": True,
                    "totalBytesRewritten": size,
                    "objectSize": size,
                    "resource": self._resource(more[2], more[4]),
                }
            )
        if query.get("alt") == "media":
            return self._read(found, headers)
        return _json(self._resource(bucket, name))

    def _refused(self, bucket: str, name: str, query: dict[str, str]) -> _Answer | None:
        """Returns the answer to a request whose precondition does not hold."""
        wanted = query.get("ifGenerationMatch")
        found = self._objects.get((bucket, name))
        if wanted in (None, str(found.generation if found else 0)):
            return None
        return _error(412, "At least one of the pre-conditions did not hold.")

    def _resource(self, bucket: str, name: str) -> dict[str, object]:
        found = self._objects[bucket, name]
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "size": str(len(found.content)),
            "generation": str(found.generation),
            "updated": f"{found.updated:%Y-%m-%dT%H:%M:%S}"
            f".{found.updated.microsecond // 1000:03}Z",
            "crc32c": _crc32c(found.content),
            "metadata": found.metadata,
        }

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
        if items := [
            self._resource(bucket, name) for name in page if not entries[name]
        ]:
            found["items"] = items
        if prefixes := [name for name in page if entries[name]]:
            found["prefixes"] = prefixes
        if len(left) > len(page):
            found["nextPageToken"] = page[-1]
        return _json(found)

    def _read(self, found: _Object, headers: dict[str, str]) -> _Answer:
        more = {
            "X-Goog-Hash": f"crc32c={_crc32c(found.content)}",
            "X-Goog-Generation": str(found.generation),
        }
        asked = headers.get("range")
        if asked is None:
            return _Answer(200, found.content, more)
        first, last = asked.removeprefix("bytes=").split("-")
        if int(first) >= len(found.content):
            return _error(416, "The requested range cannot be satisfied.")
        part = found.content[int(first) : int(last) + 1 if last else None]
        end = int(first) + len(part) - 1
        more["Content-Range"] = f"bytes {first}-{end}/{len(found.content)}"
        return _Answer(206, part, more)

    def _upload(
        self, bucket: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> _Answer:
        if query["uploadType"] == "multipart":
            (boundary,) = re.findall('boundary="?([^";]+)', headers["content-type"])
            _, first, second, _ = body.split(b"--" + boundary.encode())
            described = json.loads(first.partition(b"\r\n\r\n")[2])
            content = second.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
            return self._finish(
                _Session(
                    bucket,
                    described["name"],
                    query,
                    described.get("metadata", {}),
                    content,
                )
            )
        described = json.loads(body)
        if refused := self._refused(bucket, described["name"], query):
            return refused
        number = str(next(self._numbers))
        self._sessions[number] = _Session(
            bucket, described["name"], query, described.get("metadata", {})
        )
        return _Answer(headers={"Location": f"{self.address()}{_SESSION}{number}"})

    def _continue_upload(
        self, number: str, headers: dict[str, str], body: bytes
    ) -> _Answer:
        session = self._sessions.get(number)
        if session is None:
            return _error(404, "No such upload")
        given, _, total = headers["content-range"].partition("/")
        if not given.endswith("*"):
            session.content += body
        if total == "*" or len(session.content) < int(total):
            last = len(session.content) - 1
            return _Answer(
                308, headers={"Range": f"bytes=0-{last}"} if last > 0 else {}
            )
        return self._finish(session)

    def _finish(self, session: _Session) -> _Answer:
        if refused := self._refused(session.bucket, session.name, session.query):
            return refused
        self.put(
            session.bucket, session.name, session.content, metadata=session.metadata
        )
        return _json(self._resource(session.bucket, session.name))


def _uploaded_name(path: str, body: bytes) -> str:
    """Returns the name that an upload has in its body, as if it were in the query."""
    if not path.startswith("/upload" + _API):
        return ""
    found = re.search(rb'"name": "([^"]*)"', body)
    return f"&name={found[1].decode()}" if found else ""


def _crc32c(content: bytes) -> str:
    return base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()


def _error(status: int, message: str) -> _Answer:
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    return _Answer(status, body, {"Content-Type": "application/json; charset=UTF-8"})


def _json(value: object) -> _Answer:
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return _Answer(200, json.dumps(value).encode(), headers)


class _Server(ThreadingHTTPServer):
    """HTTP on a port; each connection is a thread."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[str, str, dict[str, str], bytes], _Answer],
    ) -> None:
        super().__init__(address, _Handler)
        self.answer = answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # An answer goes out in one piece, and at once; otherwise each takes 40 ms more.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
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

    do_GET = do_PUT = do_POST = do_DELETE = _handle
