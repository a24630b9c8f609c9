"""Resolves output paths given by users, and writes to them.

``~`` is expanded. Unexpanded shell variables, addresses of other file systems and
control characters are rejected, instead of creating a folder of that name.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from sluice.errors import UsageError
from sluice.storage import atomic

_GCS = re.compile(r"gs://[^/]+(/.*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_VARIABLE = re.compile(r"(^|/)\$[A-Za-z_{]")


def output_path_problem(text: str, *, may_be_gcs: bool = False) -> str | None:
    """Returns the expected form of an output path; None if the path is valid."""
    odd = any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
    if odd or not text or text != text.strip():
        return "a path without control characters, and without blanks at its ends"
    if may_be_gcs and text.startswith("gs:"):
        return None if _GCS.fullmatch(text) else "an address such as gs://bucket/folder"
    if _SCHEME.match(text):
        return "a directory or file of this machine" + (
            ", or a gs:// address" if may_be_gcs else ""
        )
    if _VARIABLE.search(text):
        return "a path as it is; variables such as $HOME are not replaced, ~ is"
    if os.path.expanduser(text).startswith("~"):
        return "a path below the home directory of a user of this machine"
    return None


def resolve_output_path(text: str, base: Path, what: str) -> Path:
    """Returns the absolute output path, links resolved.

    Raises:
      UsageError: the path cannot be used.
    """
    if expected := output_path_problem(text):
        raise UsageError(
            f"{what} is not a usable output path", expected=expected, actual=repr(text)
        )
    try:
        return Path(base, os.path.expanduser(text)).resolve()
    except (OSError, RuntimeError) as error:  # A loop of links is a RuntimeError.
        raise UsageError(
            f"{what} is not a usable output path", where=text, actual=str(error)
        ) from error


def write_output(path: Path, text: str, what: str) -> None:
    """Writes a file that the user asked for, whole or not at all.

    Args:
      path: as ``resolve_output_path`` returns it.
      text: its content.
      what: a noun for the message, such as ``graph``.

    Raises:
      UsageError: it cannot be written.
    """
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UsageError(
            f"the {what} cannot be written",
            where=path,
            actual=error.strerror or str(error),
        ) from error


def resolve_output_uri(text: str, base: Path, what: str) -> str:
    """Returns a ``gs://`` address, or else the absolute path; see above.

    Raises:
      UsageError: neither can be used.
    """
    if not text.startswith("gs:"):
        return str(resolve_output_path(text, base, what))
    if expected := output_path_problem(text, may_be_gcs=True):
        raise UsageError(
            f"{what} is not a usable address", expected=expected, actual=repr(text)
        )
    return text.rstrip("/")
