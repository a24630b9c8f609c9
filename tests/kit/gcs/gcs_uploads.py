"""Uploads to the emulator: in one request, or resumable in several.

An object appears when its upload is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from typing import Any

from tests.kit.gcs.gcs_objects import ObjectStore, StoredObject
from tests.kit.gcs.http_server import Request, Response, error_response, json_response

SESSION = "/upload/session/"
"""Path of a resumable upload, before its number."""


@dataclass
class _Session:
    """A resumable upload in progress."""

    bucket: str
    name: str
    query: dict[str, str]
    metadata: dict[str, str]
    content: bytearray
    made: StoredObject | None = None


class RefusedError(Exception):
    """Ends a request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.response = error_response(status, message)


class Uploads:
    """Uploads in progress, and the objects that become of them."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._sessions: dict[str, _Session] = {}
        self._numbers = count(1)

    def begin(self, bucket: str, query: dict[str, str], request: Request) -> Response:
        """Uploads an object, or begins a resumable upload."""
        kind, body = query.get("uploadType"), request.body
        if kind == "multipart":
            first, second = _parts(request)
            described = json.loads(first.partition(b"\r\n\r\n")[2])
            body = second.partition(b"\r\n\r\n")[2]
        elif kind == "resumable":
            described = json.loads(body or b"{}")
        elif kind == "media":
            described = {}
        else:
            raise RefusedError(400, f"not emulated: uploadType={kind}")
        session = _Session(
            bucket,
            described.get("name") or query["name"],
            query,
            described.get("metadata", {}),
            bytearray(body if kind != "resumable" else b""),
        )
        if kind != "resumable":
            return self._finish(session)
        check_precondition(self._store.find(bucket, session.name), query)
        number = str(next(self._numbers))
        self._sessions[number] = session
        return Response(headers={"Location": f"{request.server}{SESSION}{number}"})

    def go_on(self, number: str, request: Request) -> Response:
        """Takes the next bytes of a resumable upload, or says how many came."""
        session = self._sessions.get(number)
        if session is None:
            raise RefusedError(404, "No such upload")
        if request.method == "DELETE":
            del self._sessions[number]
            return Response(499)
        if session.made is not None:  # The response was lost.
            return json_response(resource(session.made))
        whole = f"bytes 0-{len(request.body) - 1}/{len(request.body)}"
        asked = request.headers.get("content-range", whole).removeprefix("bytes ")
        given, _, total = asked.partition("/")
        if not given.endswith("*"):
            start = int(given.partition("-")[0])
            if start > len(session.content):
                raise RefusedError(400, f"{len(session.content)} bytes came so far")
            session.content[start:] = request.body
        if total == "*" or len(session.content) < int(total):
            last = len(session.content) - 1
            return Response(
                308, headers={"Range": f"bytes=0-{last}"} if last >= 0 else {}
            )
        return self._finish(session)

    def _finish(self, session: _Session) -> Response:
        with self._store.lock:
            check_precondition(
                self._store.find(session.bucket, session.name), session.query
            )
            session.made = self._store.put(
                session.bucket, session.name, bytes(session.content), session.metadata
            )
        session.content.clear()
        return json_response(resource(session.made))


def check_precondition(
    found: StoredObject | None,
    query: Mapping[str, str],
    match: str = "ifGenerationMatch",
) -> None:
    """Refuses a request whose precondition does not hold."""
    now = str(found.generation if found else 0)
    if query.get(match, now) != now or query.get("ifGenerationNotMatch") == now:
        raise RefusedError(
            412, "At least one of the pre-conditions you specified did not hold."
        )


def resource(found: StoredObject) -> dict[str, Any]:
    """Returns the metadata of an object as the service does."""
    return {
        "kind": "storage#object",
        "id": f"{found.bucket}/{found.name}/{found.generation}",
        "bucket": found.bucket,
        "name": found.name,
        "size": str(found.size),
        "generation": str(found.generation),
        "metageneration": "1",
        "updated": _time(found.updated_s),
        "timeCreated": _time(found.updated_s),
        "contentType": "application/octet-stream",
        "storageClass": "STANDARD",
        "crc32c": found.crc32c,
        "etag": str(found.generation),
        "metadata": found.metadata,
    }


def _time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _parts(request: Request) -> list[bytes]:
    """Returns the parts of a multipart upload."""
    (boundary,) = re.findall('boundary="?([^";]+)', request.headers["content-type"])
    # What is before the first and behind the last is no part. A line break ends each.
    parts = (b"\r\n" + request.body).split(b"\r\n--" + boundary.encode())[1:-1]
    return [part.removeprefix(b"\r\n") for part in parts]
