"""Converts an exception of a node into an error message with a hint."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path

from sluice.errors import (
    ConfigError,
    DataError,
    ExitCode,
    GateError,
    NodeError,
    RemoteError,
    ServingError,
    SluiceError,
    UsageError,
)
from sluice.project import own_root
from sluice.record.parts import ErrorRecord
from sluice.secrets import redact
from sluice.storage.storage_errors import FULL, FULL_TEXTS, is_unreachable
from sluice.tfrecords.encoded_images import reason_in

_INSTALLED = ("site-packages", "dist-packages")
_GENERATED = "__autograph_generated_file"
_MESSAGE_LINES = 4
# In TensorFlow's message about an image that it cannot decode.
_UNDECODABLE = "/DecodeImage}}"
_STANDARD_LIBRARY = Path(traceback.__file__).parent
_LAUNCHER = Path(__file__).parent
# What creates the graph: its frames are not those of the user's component.
_OF_GRAPH = (own_root() / "pipeline", own_root() / "sluice")


def explain_failure(node: str, error: BaseException) -> ErrorRecord:
    """Returns the error message for an exception that a node raised.

    Sluice's errors, also wrapped by Beam, are reported as they are; a config error
    with the line of the user's code that raised its cause. Any other exception is
    reported with its class and the last line of the user's or our own code. Secrets are
    redacted.
    """
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, SluiceError):
            origin = cause.__cause__ if isinstance(cause, ConfigError) else None
            if line := origin and _own_line(origin, _OF_GRAPH):
                cause.details = (*cause.details, f"    raised at {line}")
            return _record(node, cause)
        if isinstance(cause, OSError) and is_unreachable(cause):
            return _record(node, RemoteError(f"{node} failed: {cause}"))
    text = "\n".join(str(cause) for cause in causes)
    if _UNDECODABLE in text:
        bad = DataError(
            f"{node} failed: a record's image does not decode",
            actual=reason_in(text),
            hint="correct the records or leave them out; with 'examples: {images: {}}' "
            "in the config such records go to the quarantine",
        )
        return _record(node, bad)
    hint = "the whole traceback is in the log"
    if isinstance(error, MemoryError):
        hint = "lower train.batch_size or free memory; the traceback is in the log"
    elif any(sign in text for sign in FULL_TEXTS) or _is_full(error):
        hint = "free some disk space, then run again: finished nodes are cached"
    first, *more = _first_lines(error)
    explained = NodeError(
        f"{node} failed: {type(error).__name__}: {first}",
        details=[f"    {line}" for line in more],
        where=_own_line(error),
        hint=hint,
    )
    return _record(node, explained)


def as_error(failure: ErrorRecord, text: str | None = None) -> SluiceError:
    """Returns the exception that stands for a recorded failure, with another text."""
    known = (UsageError, DataError, ServingError, RemoteError)
    kinds = {kind.exit_code: kind for kind in known}
    kind = kinds.get(ExitCode(failure.exit_code), NodeError)
    return kind.from_text(text or failure.message)


def _record(node: str, error: SluiceError) -> ErrorRecord:
    return ErrorRecord(
        node,
        redact(str(error)),
        exit_code=int(error.exit_code),
        gate=isinstance(error, GateError),
    )


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in FULL


def _first_lines(error: BaseException) -> list[str]:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[:_MESSAGE_LINES] or ["no message"]


def _causes(error: BaseException) -> list[BaseException]:
    """Returns the exception and its causes and contexts, outermost first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        implied = not current.__suppress_context__
        current = current.__cause__ or (current.__context__ if implied else None)
    return chain


def _own_line(error: BaseException, skipped: Sequence[Path] = ()) -> str | None:
    """Returns the innermost line of code that is neither installed nor generated.

    Frames of this package, which launches every node, are left out. Keras hides the
    frames of a layer's ``call`` in the message of what it raises; those of another
    process are the text of a cause.

    Args:
      error: the exception; its causes count as well.
      skipped: folders whose frames are left out too.
    """
    text = "\n".join(map(str, _causes(error)))
    places = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', text)
    for cause in _causes(error)[::-1]:
        frames = traceback.extract_tb(cause.__traceback__)
        places = [(f.filename, str(f.lineno), f.name) for f in frames] + places
    for name, line, function in reversed(places):
        path = Path(name)
        installed = any(part in _INSTALLED for part in path.parts)
        generated = path.name.startswith(_GENERATED)
        if installed or generated or not path.is_file():
            continue
        if not {_STANDARD_LIBRARY, _LAUNCHER, *skipped} & {*path.parents}:
            return f"{name}:{line} in {function}"
    return None
