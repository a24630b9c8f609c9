"""Google Cloud Storage, with Google's client and without TensorFlow.

Application default credentials are used if there are any; public buckets need none.
``STORAGE_EMULATOR_HOST`` selects another server. Transient failures are retried by the
client for two minutes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, Literal, cast
from uuid import uuid4

import google.auth
import google.resumable_media
import requests
from google.api_core.exceptions import GoogleAPIError
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY

from sluice.storage.storage import Entry, Storage
from sluice.storage.storage_errors import PreconditionFailedError, error_of_status

SCHEME = "gs://"
RETRY = DEFAULT_RETRY
# Of a service that does not answer, where nothing has begun yet.
NO_ANSWER_S = 8.0
# A read of a large object is one request for each so many bytes.
_BLOCK_BYTES = 8 << 20
_FIELDS = "items(name,size,timeCreated,generation),prefixes,nextPageToken"
# Metadata key with the id of an upload, to tell a lost response from a lost race.
_UPLOAD = "sluice-upload"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_ERRORS = (
    GoogleAPIError,
    GoogleAuthError,
    google.resumable_media.DataCorruption,
    google.resumable_media.InvalidResponse,
    requests.RequestException,
)


class GcsStorage(Storage):
    """Objects by ``gs://bucket/name``; names are used as they are, without escapes."""

    def list(
        self,
        folder: str,
        *,
        recursive: bool = False,
        matching: Callable[[str], bool] | None = None,
    ) -> Sequence[Entry]:
        bucket, name = _parse(folder)
        prefix = f"{name.rstrip('/')}/" if name.strip("/") else ""
        base = f"{SCHEME}{bucket}/{prefix}"
        with _os_errors(folder):
            found = _client().list_blobs(
                bucket,
                prefix=prefix,
                delimiter=None if recursive else "/",
                fields=_FIELDS,
                retry=RETRY,
            )
            # A name that ends with a slash is a folder marker.
            files = [blob for blob in found if not blob.name.endswith("/")]
            inner = [one[len(prefix) :].rstrip("/") for one in found.prefixes]
        entries = [
            _entry(f"{SCHEME}{bucket}/{blob.name}", blob.name[len(prefix) :], blob)
            for blob in files
        ]
        entries += [Entry(base + name, name, "folder") for name in inner if name]
        there = (entry for entry in entries if matching is None or matching(entry.name))
        return sorted(there, key=lambda entry: entry.name)

    def stat(self, uri: str) -> Entry:
        name = uri.rstrip("/").rpartition("/")[2]
        blob = _blob(uri)
        try:
            return _entry(uri, name, self._look(blob, uri))
        except FileNotFoundError:
            with _os_errors(uri):
                below = _client().list_blobs(
                    blob.bucket,
                    prefix=f"{blob.name.rstrip('/')}/" if blob.name else "",
                    max_results=1,
                    retry=RETRY,
                )
                if blob.name and not any(True for _ in below):
                    raise
            return Entry(uri, name, "folder")

    def is_file(self, uri: str) -> bool:
        try:
            self._look(_blob(uri), uri)
        except FileNotFoundError:
            return False
        return True

    def read(self, uri: str) -> bytes:
        with _os_errors(uri):
            return _blob(uri).download_as_bytes(raw_download=True, retry=RETRY)

    def open(
        self, uri: str, mode: Literal["rb", "wb"], *, generation: str | None = None
    ) -> IO[bytes]:
        if mode == "wb":
            return cast(IO[bytes], _Upload(self, uri))
        blob = self._look(_blob(uri), uri)
        if generation not in (None, str(blob.generation)):
            raise PreconditionFailedError(uri)
        # Pinned to this generation, so that an object replaced during the read is not
        # mixed from two.
        reader = _Download(_blob(uri, blob.generation), blob.size, uri)
        return io.BufferedReader(reader, _BLOCK_BYTES)

    def write_atomically(
        self, uri: str, data: bytes, *, if_generation: str | None = None
    ) -> None:
        self.upload(uri, io.BytesIO(data), if_generation)

    def write_if_absent(self, uri: str, data: bytes) -> bool:
        try:
            self.upload(uri, io.BytesIO(data), "0")
        except PreconditionFailedError:
            return False
        return True

    def upload(self, uri: str, file: IO[bytes], if_generation: str | None) -> None:
        """Uploads a whole file; its object appears whole.

        Replaces the generation ``if_generation``: "0" for none, and None for any.

        Raises:
          PreconditionFailedError: the object is of another generation.
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
                    if_generation_match=if_generation and int(if_generation),
                )
        except PreconditionFailedError:
            # An earlier attempt may have succeeded, with its response lost.
            if not self._made_by(blob.metadata, uri):
                raise

    def copy(self, source: str, target: str) -> None:
        old, new = _blob(source), _blob(target)
        with _os_errors(source):
            token, *_ = new.rewrite(old, retry=RETRY)
            while token is not None:
                token, *_ = new.rewrite(old, token=token, retry=RETRY)

    def rename(self, source: str, target: str) -> None:
        self.copy(source, target)
        # An earlier attempt may have deleted it, with its response lost.
        with contextlib.suppress(FileNotFoundError):
            self.delete(source)

    def delete(self, uri: str) -> None:
        with _os_errors(uri):
            _blob(uri).delete(retry=RETRY)

    def delete_tree(self, uri: str) -> None:
        bucket, name = _parse(uri)
        if not name.strip("/"):
            raise ValueError(f"{uri} is a whole bucket, which is never deleted")
        client = _client()
        with _os_errors(uri):
            prefix = f"{name.rstrip('/')}/"
            blobs = [
                _blob(uri.rstrip("/")),
                *client.list_blobs(bucket, prefix=prefix, retry=RETRY),
            ]
            # Another process may have deleted one of them.
            client.bucket(bucket).delete_blobs(
                blobs, on_error=lambda blob: None, retry=RETRY
            )

    def make_folder(self, uri: str) -> None:
        """Does nothing: a folder is there as soon as something lies in it."""

    def _look(self, blob: Any, uri: str) -> Any:
        if not blob.name:
            raise error_of_status(404, "a bucket is no object", uri)
        with _os_errors(uri):
            blob.reload(retry=RETRY)
        return blob

    def _made_by(self, metadata: dict[str, str], uri: str) -> bool:
        try:
            return self._look(_blob(uri), uri).metadata == metadata
        except FileNotFoundError:
            return False


class _Download(io.RawIOBase):
    """Reads one generation of an object, a range for each request."""

    def __init__(self, blob: Any, size: int, uri: str) -> None:
        self._blob = blob
        self._size = size
        self._uri = uri
        self._at = 0

    def readable(self) -> bool:
        return True

    def readall(self) -> bytes:
        # The inherited one asks for 8 KiB at a time.
        return b"".join(iter(lambda: self.read(_BLOCK_BYTES), b""))

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if self._at >= end:
            return 0
        try:
            with _os_errors(self._uri):
                # Ranges have no checksum.
                data = self._blob.download_as_bytes(
                    start=self._at,
                    end=end - 1,
                    raw_download=True,
                    checksum=None,
                    retry=RETRY,
                )
        except FileNotFoundError as error:
            raise PreconditionFailedError(self._uri) from error
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Upload:
    """Collects what is written and uploads it on ``close``; nothing if it fails.

    The content is buffered in a temporary file, in memory up to the size of a block.
    Without ``close`` nothing is uploaded.
    """

    def __init__(self, storage: GcsStorage, uri: str) -> None:
        self._storage = storage
        self._uri = uri
        self._file = tempfile.SpooledTemporaryFile(_BLOCK_BYTES)  # noqa: SIM115

    def write(self, data: bytes | memoryview) -> int:
        return self._file.write(data)

    def close(self) -> None:
        if self._file.closed:
            return
        with self._file:
            self._storage.upload(self._uri, cast(IO[bytes], self._file), None)

    def __enter__(self) -> _Upload:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


def _parse(uri: str) -> tuple[str, str]:
    bucket, _, name = uri.removeprefix(SCHEME).partition("/")
    if not bucket:
        raise error_of_status(404, "the address names no bucket", uri)
    return bucket, name


def _blob(uri: str, generation: int | None = None) -> Any:
    bucket, name = _parse(uri)
    return _client().bucket(bucket).blob(name, generation=generation)


def _entry(uri: str, name: str, blob: Any) -> Entry:
    # Of this generation; "updated" changes with labels and the storage class, too.
    written_s = blob.time_created.timestamp()
    return Entry(
        uri=uri,
        name=name,
        kind="file",
        size_bytes=blob.size,
        generation=str(blob.generation),
        modified_s=written_s,
        changed_s=written_s,
    )


def _client() -> Any:
    # Connections must not be shared with forked processes.
    return _client_of(os.getpid(), os.environ.get("STORAGE_EMULATOR_HOST"))


@functools.lru_cache(maxsize=1)
def _client_of(process: int, emulator: str | None) -> Any:
    if emulator:
        return storage.Client()
    try:
        credentials, project = google.auth.default(scopes=[_SCOPE])
    except DefaultCredentialsError:
        return storage.Client.create_anonymous_client()
    return storage.Client(project=project or "<none>", credentials=credentials)


@contextmanager
def giving_up_soon() -> Iterator[None]:
    """Ends the retries of this process's requests earlier than the client does.

    For requests of a command that has begun nothing yet and can be repeated.
    """
    global RETRY
    before, RETRY = RETRY, RETRY.with_timeout(NO_ANSWER_S)
    try:
        yield
    finally:
        RETRY = before


@contextmanager
def _os_errors(uri: str) -> Iterator[None]:
    """Raises as an OSError what the client raises."""
    try:
        yield
    except _ERRORS as error:
        raise _as_os_error(error, uri) from error


def _as_os_error(error: BaseException, uri: str) -> OSError:
    if isinstance(error, GoogleAuthError):
        return error_of_status(401, str(error), uri)
    # A RetryError has the last failure as its cause.
    cause = getattr(error, "cause", None)
    if isinstance(cause, _ERRORS):
        return _as_os_error(cause, uri)
    if isinstance(error, google.resumable_media.InvalidResponse):
        status = error.response.status_code
        return error_of_status(status, f"{status}: {error.response.text}", uri)
    if isinstance(error, requests.ConnectionError):
        text = "no connection to the storage service: is the network there?"
        return OSError(errno.EHOSTUNREACH, text, uri)
    return error_of_status(getattr(error, "code", None), str(error), uri)
