"""Google Cloud Storage, with Google's client and without TensorFlow.

Application default credentials are used if there are any; public buckets need none.
``STORAGE_EMULATOR_HOST`` selects another server. Transient failures are retried by the
client for half a minute; a command looks for a connection first.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import IO, Any, Literal, cast
from uuid import uuid4

import google.auth
import requests
from google.api_core.exceptions import GoogleAPIError
from google.auth.exceptions import (
    DefaultCredentialsError,
    GoogleAuthError,
    TransportError,
)
from google.cloud.storage import Client
from google.cloud.storage.fileio import BlobReader
from google.cloud.storage.retry import DEFAULT_RETRY
from google.resumable_media import DataCorruption, InvalidResponse

from sluice.network import require_connection
from sluice.storage.storage import Entry, PreconditionFailedError, Storage

SCHEME = "gs://"
_ADDRESS = "https://storage.googleapis.com"
# The client's own two minutes are long where somebody waits.
RETRY = DEFAULT_RETRY.with_timeout(30)
# A read of a large object is one request for each so many bytes.
_BLOCK_BYTES = 8 << 20
_FIELDS = "items(name,size,timeCreated,generation),prefixes,nextPageToken"
# Metadata key with the id of an upload, to tell a lost response from a lost race.
_UPLOAD = "sluice-upload"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_LOGIN = (
    "run 'gcloud auth application-default login', or let GOOGLE_APPLICATION_CREDENTIALS"
    " name a key file"
)
_name = attrgetter("name")
_ERRORS = (
    GoogleAPIError,
    GoogleAuthError,
    DataCorruption,
    InvalidResponse,
    requests.RequestException,
)


class GcsStorage(Storage):
    """Objects by ``gs://bucket/name``; names are used as they are, without escapes."""

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[Entry]:
        base = f"{folder.rstrip('/')}/"
        with _os_errors(folder):
            found = _below(folder, fields=_FIELDS, delimiter="" if recursive else "/")
            # A name that ends with a slash is a folder marker.
            entries = [_entry(b, base) for b in found if not b.name.endswith("/")]
        for prefix in found.prefixes:
            uri = f"{SCHEME}{found.bucket.name}/{prefix}".rstrip("/")
            entries.append(Entry(uri, uri[len(base) :], "folder"))
        return sorted(filter(_name, entries), key=_name)

    def stat(self, uri: str) -> Entry:
        base = f"{uri.rstrip('/').rpartition('/')[0]}/"
        try:
            return _entry(_look(uri), base)
        except FileNotFoundError:
            with _os_errors(uri):
                is_empty = not any(True for _ in _below(uri, max_results=1))
            if is_empty and _blob(uri).name:
                raise
            return Entry(uri, uri.rstrip("/")[len(base) :], "folder")

    def open(
        self, uri: str, mode: Literal["rb", "wb"], *, generation: str | None = None
    ) -> IO[bytes]:
        if mode == "wb":
            return cast(IO[bytes], _Upload(self, uri))
        # With its generation, which all requests then ask for.
        blob = _look(uri)
        if generation not in (None, str(blob.generation)):
            raise PreconditionFailedError(uri)
        reader = _Reader(blob, _BLOCK_BYTES, RETRY, raw_download=True)
        return cast(IO[bytes], reader)

    def write_atomically(self, uri: str, data: bytes) -> None:
        self.upload(uri, io.BytesIO(data))

    def write_if_absent(self, uri: str, data: bytes) -> bool:
        try:
            self.upload(uri, io.BytesIO(data), is_new=True)
        except PreconditionFailedError:
            return False
        return True

    def upload(self, uri: str, file: IO[bytes], *, is_new: bool = False) -> None:
        """Uploads a whole file; its object appears whole.

        Raises:
          PreconditionFailedError: there is an object where one ``is_new``.
          OSError: it cannot be uploaded.
        """
        blob = _blob(uri)
        blob.metadata = {_UPLOAD: uuid4().hex}
        try:
            with _os_errors(uri):
                blob.upload_from_file(
                    file,
                    rewind=True,
                    size=file.seek(0, os.SEEK_END),
                    checksum="crc32c",
                    retry=RETRY,
                    if_generation_match=0 if is_new else None,
                )
        except PreconditionFailedError:
            # An earlier attempt may have succeeded, with its response lost.
            if not self.exists(uri) or _look(uri).metadata != blob.metadata:
                raise

    def rename(self, source: str, target: str) -> None:
        old, new, token = _blob(source), _blob(target), None
        with _os_errors(source):
            while (token := new.rewrite(old, token=token, retry=RETRY)[0]) is not None:
                pass
        # An earlier attempt may have deleted it, with its response lost.
        with contextlib.suppress(FileNotFoundError):
            self.delete(source)

    def delete(self, uri: str) -> None:
        with _os_errors(uri):
            _blob(uri).delete(retry=RETRY)

    def delete_tree(self, uri: str) -> None:
        blob = _blob(uri.rstrip("/"))
        if not blob.name:
            raise ValueError(f"{uri} is a whole bucket, which is never deleted")
        with _os_errors(uri):
            # Another process may have deleted one of them.
            blob.bucket.delete_blobs(
                [blob, *_below(uri)], on_error=lambda blob: None, retry=RETRY
            )

    def make_folder(self, uri: str) -> None:
        """Does nothing: a folder is there as soon as something lies in it."""


class _Reader(BlobReader):
    """Reads one generation of an object, a range for each request."""

    def read(self, size: int = -1) -> bytes:
        uri = f"{SCHEME}{self._blob.bucket.name}/{self._blob.name}"
        try:
            with _os_errors(uri):
                return super().read(size)
        except FileNotFoundError as error:
            raise PreconditionFailedError(uri) from error


class _Upload:
    """Collects what is written and uploads it on ``close``; nothing if it fails."""

    def __init__(self, storage: GcsStorage, uri: str) -> None:
        self._storage = storage
        self._uri = uri
        self._file = tempfile.SpooledTemporaryFile(_BLOCK_BYTES)  # noqa: SIM115

    def write(self, data: bytes | memoryview) -> int:
        return self._file.write(data)

    def close(self) -> None:
        if not self._file.closed:
            with self._file:
                self._storage.upload(self._uri, cast(IO[bytes], self._file))

    def __enter__(self) -> _Upload:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._file.close()
        self.close()


def _blob(uri: str) -> Any:
    bucket, _, name = uri.removeprefix(SCHEME).partition("/")
    with _os_errors(uri):
        return _client().bucket(bucket).blob(name)


def _look(uri: str) -> Any:
    """Returns the object with its properties."""
    blob = _blob(uri)
    if not blob.name:
        raise FileNotFoundError(errno.ENOENT, "a bucket is no object", uri)
    with _os_errors(uri):
        blob.reload(retry=RETRY)
    return blob


def _below(uri: str, **options: Any) -> Any:
    """Returns an iterator of the objects below a folder."""
    blob = _blob(f"{uri.rstrip('/')}/")
    return _client().list_blobs(blob.bucket, prefix=blob.name, retry=RETRY, **options)


def _entry(blob: Any, base: str) -> Entry:
    uri = f"{SCHEME}{blob.bucket.name}/{blob.name}"
    # When this generation was written; labels and storage classes change "updated".
    written_s = blob.time_created.timestamp()
    generation = str(blob.generation)
    name = uri[len(base) :]
    return Entry(uri, name, "file", blob.size, generation, written_s, written_s)


def _client() -> Any:
    # Connections must not be shared with forked processes.
    return _client_of(os.getpid(), os.environ.get("STORAGE_EMULATOR_HOST"))


@functools.lru_cache(maxsize=1)
def _client_of(process: int, emulator: str | None) -> Any:
    if emulator:
        return Client()
    require_connection(_ADDRESS)
    try:
        credentials, project = google.auth.default(scopes=[_SCOPE])
    except DefaultCredentialsError:
        return Client.create_anonymous_client()
    return Client(project=project or "<none>", credentials=credentials)


@contextlib.contextmanager
def _os_errors(uri: str) -> Iterator[None]:
    """Raises as an OSError what the client raises."""
    try:
        yield
    except _ERRORS as error:
        # A RetryError has the last failure as its cause.
        cause = getattr(error, "cause", None) or error
        raise _as_os_error(cause, uri) from error


def _as_os_error(error: Exception, uri: str) -> OSError:
    code = getattr(error, "code", None)
    if code == 412:
        return PreconditionFailedError(uri)
    if code == 404:
        is_bucket = "bucket does not exist" in str(error)
        text = "there is no such bucket" if is_bucket else os.strerror(errno.ENOENT)
        return FileNotFoundError(errno.ENOENT, text, uri)
    # Google's library raises TransportError where no token could be asked for.
    if isinstance(error, requests.ConnectionError | TransportError):
        text = "no connection to the storage service: is the network there?"
        return OSError(errno.EHOSTUNREACH, text, uri)
    if code in (401, 403) or isinstance(error, GoogleAuthError):
        text = f"permission denied ({error}); without valid credentials, {_LOGIN}"
        return PermissionError(errno.EACCES, text, uri)
    return OSError(errno.EIO, f"the storage service failed ({error})", uri)
