"""Google Cloud Storage's JSON API, as far as its clients here need it.

google-cloud-storage, Beam (which deletes and copies in batches) and TensorFlow (which
reads through the XML API's address of an object): metadata, paged listings, range
reads, uploads, rewrites, deletions, generations and preconditions. A folder is only a
prefix of names. What a request asks for beyond that is refused.
"""

from __future__ import annotations

import email
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.kit.gcs.gcs_objects import ObjectStore, StoredObject
from tests.kit.gcs.gcs_uploads import (
    SESSION,
    RefusedError,
    Uploads,
    check_precondition,
    resource,
)
from tests.kit.gcs.http_server import Request, Response, error_response, json_response

# Where a service account gets a token.
_TOKEN = "/token"
_API = "/storage/v1/b"
_BATCH = "/batch/storage/v1"
_CONDITIONS = ("ifGenerationMatch", "ifGenerationNotMatch", "ifSourceGenerationMatch")
# Query parameters that are carried out, or that change only which fields come back.
_KNOWN = {
    *_CONDITIONS,
    *("alt", "fields", "projection", "prettyPrint", "generation", "uploadType", "name"),
    *("prefix", "delimiter", "pageToken", "maxResults", "rewriteToken"),
    *("project", "softDeleted", "includeFoldersAsPrefixes", "userProject"),
}


class GcsApi:
    """Answers requests about the objects of a store.

    Attributes:
      page_size: names on a page of a listing, at most.
    """

    page_size = 1000

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._uploads = Uploads(store)

    def answer(self, request: Request) -> Response:
        """Returns the response to a request."""
        parts = urlsplit(request.url)
        values = parse_qs(parts.query, keep_blank_values=True)
        query = {key: value[0] for key, value in values.items()}
        try:
            if request.method == "POST" and parts.path == _TOKEN:
                token = {"access_token": "emulated", "expires_in": 3600}
                return json_response({**token, "token_type": "Bearer"})
            if parts.path.startswith(SESSION):
                number = parts.path.removeprefix(SESSION)
                return self._uploads.go_on(number, request)
            if parts.path == _BATCH:
                return self._batch(request)
            if unknown := query.keys() - _KNOWN:
                raise RefusedError(400, f"not emulated: {', '.join(sorted(unknown))}")
            return self._route(request, parts.path, query)
        except RefusedError as error:
            return error.response
        except FileNotFoundError:  # Replaced between the look and the read.
            return error_response(404, "No such object")

    def _route(self, request: Request, path: str, query: dict[str, str]) -> Response:
        kind, found, below = path.partition(_API)
        if not found:
            # The XML API's address: /BUCKET/NAME.
            _, bucket, name = unquote(path).split("/", 2)
            return self._read(bucket, name, query, request.headers)
        _, *names = map(unquote, below.split("/"))
        if not names and request.method == "POST":
            bucket = json.loads(request.body)["name"]
            self._store.make_bucket(bucket)
            return json_response(_bucket_resource(bucket))
        bucket, *rest = names or [""]
        self._require_bucket(bucket)
        if kind == "/upload":
            return self._uploads.begin(bucket, query, request)
        if not rest and request.method == "GET":
            return json_response(_bucket_resource(bucket))
        if rest == ["storageLayout"] and request.method == "GET":
            return json_response(_layout(bucket))
        if rest == ["o"] and request.method == "GET":
            return self._list(bucket, query)
        if len(rest) < 2 or rest[0] != "o":
            raise RefusedError(400, f"not emulated: {request.method} {path}")
        return self._of_object(request, bucket, rest[1], rest[2:], query)

    def _of_object(
        self,
        request: Request,
        bucket: str,
        name: str,
        more: list[str],
        query: dict[str, str],
    ) -> Response:
        if request.method == "GET" and query.get("alt") == "media":
            return self._read(bucket, name, query, request.headers)
        with self._store.lock:
            if more[:1] in (["rewriteTo"], ["copyTo"]):
                return self._copy(self._existing(bucket, name, {}), more, query)
            found = self._existing(bucket, name, query)
            check_precondition(found, query)
            if request.method == "DELETE":
                self._store.remove(found)
                return Response(204)
            if request.method != "GET" or more:
                raise RefusedError(400, f"not emulated: {request.method} of an object")
            return json_response(resource(found))

    def _require_bucket(self, bucket: str) -> None:
        if not self._store.has_bucket(bucket):
            raise RefusedError(404, "The specified bucket does not exist.")

    def _existing(
        self, bucket: str, name: str, query: Mapping[str, str]
    ) -> StoredObject:
        found = self._store.find(bucket, name)
        wanted = query.get("generation")
        if found is None or wanted not in (None, str(found.generation)):
            raise RefusedError(404, f"No such object: {bucket}/{name}")
        return found

    def _list(self, bucket: str, query: dict[str, str]) -> Response:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = query.get("pageToken", "")
        entries: dict[str, StoredObject | None] = {}
        for found in self._store.below(bucket, prefix):
            inner, slash, _ = found.name[len(prefix) :].partition(delimiter or "\0")
            key = prefix + inner + slash if slash else found.name
            entries[key] = None if slash else found
        left = [name for name in entries if name > after]
        page = left[: min(self.page_size, int(query.get("maxResults", 1000)))]
        objects = [entry for name in page if (entry := entries[name]) is not None]
        answer: dict[str, Any] = {"kind": "storage#objects"}
        if objects:
            answer["items"] = [resource(one) for one in objects]
        if prefixes := [name for name in page if entries[name] is None]:
            answer["prefixes"] = prefixes
        if len(left) > len(page):
            answer["nextPageToken"] = page[-1]
        return json_response(answer)

    def _read(
        self, bucket: str, name: str, query: dict[str, str], headers: Mapping[str, str]
    ) -> Response:
        self._require_bucket(bucket)
        found = self._existing(bucket, name, query)
        check_precondition(found, query)
        more = {
            "X-Goog-Hash": f"crc32c={found.crc32c}",
            "X-Goog-Generation": str(found.generation),
        }
        asked = headers.get("range")
        if asked is None:
            return Response(200, self._store.content(found), more)
        first, last = asked.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or found.size), found.size - 1)
        if start >= found.size:
            raise RefusedError(416, "The requested range cannot be satisfied.")
        more["Content-Range"] = f"bytes {start}-{end}/{found.size}"
        return Response(206, self._store.content(found, start, end - start + 1), more)

    def _copy(
        self, source: StoredObject, more: list[str], query: dict[str, str]
    ) -> Response:
        kind, _, bucket, _, name = more
        self._require_bucket(bucket)
        check_precondition(source, query, "ifSourceGenerationMatch")
        check_precondition(self._store.find(bucket, name), query)
        content = self._store.content(source)
        copy = self._store.put(bucket, name, content, source.metadata)
        if kind == "copyTo":
            return json_response(resource(copy))
        return json_response(
            {
                "kind": "storage#rewriteResponse",
                "done": True,
                "totalBytesRewritten": str(copy.size),
                "objectSize": str(copy.size),
                "resource": resource(copy),
            }
        )

    def _batch(self, request: Request) -> Response:
        """Answers several requests in one; none of them is an upload or a download."""
        boundary, answers = "emulated", []
        kind = request.headers["content-type"].encode()
        parts = email.message_from_bytes(b"Content-Type: %s\n\n" % kind + request.body)
        for number, part in enumerate(parts.get_payload()):
            lines = part.get_payload().lstrip().replace("\r\n", "\n")
            line, _, rest = lines.partition("\n")
            method, url, _ = line.split(" ", 2)
            path = urlsplit(url)._replace(scheme="", netloc="").geturl()
            head, _, body = rest.partition("\n\n")
            headers = {k.lower(): v for k, v in email.message_from_string(head).items()}
            answer = self.answer(Request(method, path, headers, body.encode()))
            answers.append(
                f"--{boundary}\r\nContent-Type: application/http\r\n"
                f"Content-ID: <response-{number}>\r\n\r\n"
                f"HTTP/1.1 {answer.status} emulated\r\n"
                "Content-Type: application/json; charset=UTF-8\r\n"
                f"Content-Length: {len(answer.body)}\r\n\r\n{answer.body.decode()}\r\n"
            )
        answers.append(f"--{boundary}--\r\n")
        headers = {"Content-Type": f"multipart/mixed; boundary={boundary}"}
        return Response(200, "".join(answers).encode(), headers)


def _layout(bucket: str) -> dict[str, Any]:
    """Returns what TensorFlow 2.21 asks before it makes or renames a folder."""
    return {
        "kind": "storage#storageLayout",
        "bucket": bucket,
        "location": "US-CENTRAL1",
        "locationType": "region",
        "hierarchicalNamespace": {"enabled": False},
    }


def _bucket_resource(bucket: str) -> dict[str, Any]:
    return {
        "kind": "storage#bucket",
        "id": bucket,
        "name": bucket,
        "location": "US-CENTRAL1",
        "locationType": "region",
        "projectNumber": "1",
        "storageClass": "STANDARD",
    }
