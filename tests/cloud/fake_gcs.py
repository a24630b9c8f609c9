"""Fake Google Cloud Storage with the part of the JSON API that our client uses.

Metadata, paged listings, range reads, multipart and resumable uploads, rewrites,
deletions, generations and preconditions. As in the service, an object appears when its
upload is complete, and a folder is only a prefix of names.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
from fake_http import Response, Server, error_response, json_response

CUT = 0
"""Status for ``fail``: the connection is closed in the middle of the response."""
LOST = -1
"""Status for ``fail``: the request is executed, but its response is a 503."""

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
    """A resumable upload in progress."""

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


class FakeGcs:
    """Buckets in memory, and an HTTP server for them.

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
        self._server = Server(("127.0.0.1", 0), self.answer)
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
        """Makes the next requests fail whose path matches a regular expression."""
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

    def answer(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> Response:
        """Returns the response to one request."""
        parts = urlsplit(url)
        query = {key: value[0] for key, value in parse_qs(parts.query).items()}
        with self._lock:
            shown = unquote(url) + _uploaded_name(parts.path, body)
            failure = self._failure(method, shown)
            if failure is not None and failure.status > 0:
                answer = error_response(failure.status, "made to fail")
            else:
                answer = self._route(method, parts.path, query, headers, body)
                if failure is not None and failure.status == LOST:
                    answer = error_response(503, "made to fail")
                elif failure is not None:
                    answer = Response(
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
    ) -> Response:
        if path.startswith(_SESSION):
            return self._continue_upload(path.removeprefix(_SESSION), headers, body)
        kind, _, below = path.partition(_API)
        bucket, *rest = below.split("/")
        if bucket not in self._buckets:
            return error_response(404, "The specified bucket does not exist.")
        if kind == "/upload":
            return self._upload(bucket, query, headers, body)
        if rest == ["o"]:
            return self._list(bucket, query)
        if rest[0] != "o":
            return error_response(400, "unknown request")
        return self._of_object(method, bucket, query, headers, *map(unquote, rest[1:]))

    def _of_object(
        self,
        method: str,
        bucket: str,
        query: dict[str, str],
        headers: dict[str, str],
        name: str,
        *more: str,
    ) -> Response:
        found = self._objects.get((bucket, name))
        wanted = query.get("generation")
        if found is None or wanted not in (None, str(found.generation)):
            return error_response(404, f"No such object: {bucket}/{name}")
        if refused := self._refused(bucket, name, query):
            return refused
        if method == "DELETE":
            del self._objects[bucket, name]
            return Response(204)
        if more:
            # rewriteTo, b, BUCKET, o, NAME
            self.put(more[2], more[4], found.content)
            size = str(len(found.content))
            return json_response(
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
        return json_response(self._resource(bucket, name))

    def _refused(
        self, bucket: str, name: str, query: dict[str, str]
    ) -> Response | None:
        """Returns a 412 if the precondition does not hold."""
        wanted = query.get("ifGenerationMatch")
        found = self._objects.get((bucket, name))
        if wanted in (None, str(found.generation if found else 0)):
            return None
        return error_response(412, "At least one of the pre-conditions did not hold.")

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

    def _list(self, bucket: str, query: dict[str, str]) -> Response:
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
        return json_response(found)

    def _read(self, found: _Object, headers: dict[str, str]) -> Response:
        more = {
            "X-Goog-Hash": f"crc32c={_crc32c(found.content)}",
            "X-Goog-Generation": str(found.generation),
        }
        asked = headers.get("range")
        if asked is None:
            return Response(200, found.content, more)
        first, last = asked.removeprefix("bytes=").split("-")
        if int(first) >= len(found.content):
            return error_response(416, "The requested range cannot be satisfied.")
        part = found.content[int(first) : int(last) + 1 if last else None]
        end = int(first) + len(part) - 1
        more["Content-Range"] = f"bytes {first}-{end}/{len(found.content)}"
        return Response(206, part, more)

    def _upload(
        self, bucket: str, query: dict[str, str], headers: dict[str, str], body: bytes
    ) -> Response:
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
        return Response(headers={"Location": f"{self.address()}{_SESSION}{number}"})

    def _continue_upload(
        self, number: str, headers: dict[str, str], body: bytes
    ) -> Response:
        session = self._sessions.get(number)
        if session is None:
            return error_response(404, "No such upload")
        given, _, total = headers["content-range"].partition("/")
        if not given.endswith("*"):
            session.content += body
        if total == "*" or len(session.content) < int(total):
            last = len(session.content) - 1
            return Response(
                308, headers={"Range": f"bytes=0-{last}"} if last > 0 else {}
            )
        return self._finish(session)

    def _finish(self, session: _Session) -> Response:
        if refused := self._refused(session.bucket, session.name, session.query):
            return refused
        self.put(
            session.bucket, session.name, session.content, metadata=session.metadata
        )
        return json_response(self._resource(session.bucket, session.name))


def _uploaded_name(path: str, body: bytes) -> str:
    """Returns the object's name in an upload's body as a query parameter."""
    if not path.startswith("/upload" + _API):
        return ""
    found = re.search(rb'"name": "([^"]*)"', body)
    return f"&name={found[1].decode()}" if found else ""


def _crc32c(content: bytes) -> str:
    return base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()
