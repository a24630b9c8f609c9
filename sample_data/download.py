"""Downloads the files of a data set, with resume and checksum.

An incomplete file is NAME.part, which the next call continues; it is renamed when its
size and digest are verified.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from sample_data.data_set import DataSet, RemoteFile
from sluice.errors import DataError, UsageError
from sluice.storage import atomic, digest

# Consecutive connections without new bytes before the download fails.
_ATTEMPTS = 3
_TIMEOUT_S = 30
# A broken connection loses at most this much.
_CHUNK_BYTES = 1 << 16
_STEPS = 10


def download(
    data_set: DataSet, folder: Path, report: Callable[[str], None] = lambda line: None
) -> Path:
    """Downloads the missing files of a data set and returns their folder.

    Raises:
      UsageError: the data set has no URLs, or the download failed.
      DataError: the size or digest of a file is wrong.
      OSError: the folder cannot be written.
    """
    own = folder / data_set.name
    if not data_set.downloads:
        raise UsageError(
            f"the data set {data_set.name} is made from your own files",
            expected=data_set.expected_files,
            hint=f"sluice data make {data_set.name} --from DIR --to DIR",
        )
    own.mkdir(parents=True, exist_ok=True)
    with atomic.lock(own / ".lock"):
        for file in data_set.downloads:
            path = own / file.name
            if not (path.is_file() and path.stat().st_size == file.size_bytes):
                _download(data_set, file, path, report)
            if file.unpacked and not (own / file.unpacked).is_dir():
                unpack(path, own, file.unpacked)
    return own


def unpack(archive: Path, folder: Path, name: str) -> None:
    """Unpacks the regular files of an archive's top folder atomically.

    Raises:
      DataError: the archive is damaged or has a file outside its top folder.
      OSError: the folder cannot be written.
    """
    part = folder / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        with tarfile.open(archive, "r:*") as members:
            for member in members:
                path = part / member.name
                inside = Path(member.name).parts[:1] == (name,)
                if ".." in path.parts or not inside:
                    raise tarfile.ReadError(f"a file is named {member.name!r}")
                file = members.extractfile(member) if member.isreg() else None
                if file is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with open(path, "wb") as copy:
                        shutil.copyfileobj(file, copy)
    except (tarfile.TarError, EOFError) as error:
        raise DataError(
            "this archive is truncated or corrupt",
            where=archive,
            actual=str(error),
            hint="Remove it, and run the command again.",
        ) from error
    (part / name).rename(folder / name)
    part.rmdir()


def _download(
    data_set: DataSet, file: RemoteFile, path: Path, report: Callable[[str], None]
) -> None:
    import requests

    part = path.with_name(f"{path.name}.part")
    failures, reason = 0, ""
    while _size(part) < file.size_bytes:
        before = _size(part)
        try:
            _continue(file, part, report)
            reason = "the connection ended early"
        except requests.RequestException as error:
            reason = str(error)
        failures = 0 if _size(part) > before else failures + 1
        if failures == _ATTEMPTS:
            raise UsageError(
                f"{file.name} of the data set {data_set.name} cannot be downloaded",
                where=file.url,
                actual=reason,
                expected=f"a network, or the files: {data_set.expected_files}",
                hint="Download them elsewhere, then: "
                f"sluice data make {data_set.name} --from DIR",
            )
    found = _size(part), digest.of_file(part)
    if found != (file.size_bytes, file.sha256):
        part.unlink()
        raise DataError(
            "the downloaded file has another size or digest than expected",
            where=file.url,
            expected=f"{file.size_bytes:,} bytes, SHA-256 {file.sha256}",
            actual=f"{found[0]:,} bytes, SHA-256 {found[1]}",
            hint="Run the command again; behind a proxy or a login page, download "
            f"it elsewhere: sluice data make {data_set.name} --from DIR",
        )
    os.replace(part, path)


def _continue(file: RemoteFile, part: Path, report: Callable[[str], None]) -> None:
    """Appends the missing bytes to a file; restarts it if Range is not supported."""
    import requests

    start = _size(part)
    # No compression in transit, because the digest is that of the file.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with requests.get(
        file.url, headers=headers, stream=True, timeout=_TIMEOUT_S
    ) as response:
        response.raise_for_status()
        resumed = response.status_code == requests.codes.partial_content
        with open(part, "ab" if resumed else "wb") as copy:
            size = copy.tell()
            step = size * _STEPS // file.size_bytes
            for chunk in response.iter_content(_CHUNK_BYTES):
                copy.write(chunk)
                size += len(chunk)
                if size > file.size_bytes:
                    return
                if size * _STEPS // file.size_bytes > step:
                    step = size * _STEPS // file.size_bytes
                    report(f"{file.name}: {size:,} of {file.size_bytes:,} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
