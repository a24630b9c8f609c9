"""Turns an exception of a node into the text that its user can act on."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from runners.local.run_result import NodeFailure
from sluice.errors import ExitCode, NodeError, SluiceError

_INSTALLED = ("site-packages", "dist-packages")
_STANDARD_LIBRARY = Path(traceback.__file__).parent


def explain_failure(node: str, kind: str, error: BaseException) -> NodeFailure:
    """Returns what to tell the user about a node that raised.

    Errors of ours, also those wrapped by Beam, speak for themselves. Anything else is
    reported as what it is, with the last line of the user's or our own code in the
    traceback.
    """
    for cause in _causes(error):
        if isinstance(cause, SluiceError):
            gate = kind.endswith("DataGate")
            return NodeFailure(str(cause), int(cause.exit_code), gate)
    root = list(_causes(error))[-1]
    text = str(root).strip().splitlines()
    first_line = text[0] if text else "no message"
    hint = "the whole traceback is in the log"
    if isinstance(root, MemoryError):
        hint = "lower train.batch_size or free memory; the traceback is in the log"
    elif isinstance(root, OSError) and root.errno == errno.ENOSPC:
        hint = "free some disk space, then run again: finished nodes are cached"
    explained = NodeError(
        f"{node} failed: {type(root).__name__}: {first_line}",
        where=_last_own_line(root) or _last_own_line(error),
        hint=hint,
    )
    return NodeFailure(str(explained), int(ExitCode.NODE))


def _causes(error: BaseException) -> list[BaseException]:
    """Returns the exception and what it was raised from, outermost first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return chain


def _last_own_line(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        installed = any(part in _INSTALLED for part in path.parts)
        if not installed and path.is_file() and _STANDARD_LIBRARY not in path.parents:
            return f"{path}:{frame.lineno} in {frame.name}"
    return None
