"""Turns an exception of a node into the text that its user can act on."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from runners.local.run_result import NodeFailure
from sluice.errors import DataError, ExitCode, NodeError, SluiceError

_INSTALLED = ("site-packages", "dist-packages")
# What tfx_bsl's decoder of tf.Examples says in StatisticsGen and Transform.
_MIXED_TYPES = "had wrong type"
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
    root = _causes(error)[-1]
    if _MIXED_TYPES in str(root):
        mixed = DataError(
            f"{node} failed: records of one feature have values of different types",
            actual=_first_line(root),
            hint="write the feature with the type that the schema has in all records",
        )
        return NodeFailure(str(mixed), int(mixed.exit_code))
    hint = "the whole traceback is in the log"
    if isinstance(root, MemoryError):
        hint = "lower train.batch_size or free memory; the traceback is in the log"
    elif isinstance(root, OSError) and root.errno == errno.ENOSPC:
        hint = "free some disk space, then run again: finished nodes are cached"
    explained = NodeError(
        f"{node} failed: {type(root).__name__}: {_first_line(root)}",
        where=_last_own_line(root) or _last_own_line(error),
        hint=hint,
    )
    return NodeFailure(str(explained), int(ExitCode.NODE))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"


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
