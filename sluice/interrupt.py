"""Stops a running node cleanly on SIGTERM.

The scheduler sends SIGTERM to a node's process; Ctrl-C in the terminal reaches only the
scheduler. ``Interrupted`` is raised in the main thread, between two bytecodes, so
native code may delay it by seconds. Code inside ``deferred()`` is not interrupted.

Before ``listen()`` (in the cloud, in a test) nothing here has any effect.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class Interrupted(BaseException):
    """Raised to stop the node.

    Not an ``Exception``, so that a library's ``except Exception`` does not catch it.
    Some libraries convert it into their own error, and Python ignores exceptions in
    destructors; so the launcher checks ``requested()`` when a node has ended.
    """

    # Beam raises a DoFn's exception again, as type(error)(error.args[0] + where).
    def __init__(self, message: str = "the node was asked to stop") -> None:
        super().__init__(message)


@dataclass
class _State:
    requested: bool = False
    deferring: bool = False


_state = _State()


def listen() -> None:
    """Handles SIGTERM as a request to stop, and ignores SIGINT, in this process.

    An earlier request and a ``deferred`` block, as inherited by a fork, are reset.

    Raises:
      ValueError: called in another thread than the main one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _state.requested, _state.deferring = False, False
    signal.signal(signal.SIGTERM, _on_signal)


def requested() -> bool:
    """Returns whether a stop was requested."""
    return _state.requested


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Marks code of the main thread that a request to stop must not interrupt.

    ``requested()`` tells of it afterwards.
    """
    _state.deferring = True
    try:
        yield
    finally:
        _state.deferring = False


def _on_signal(number: int, frame: Any) -> None:
    # Only the first one raises: a second must not disturb the clean-up.
    if _state.requested:
        return
    _state.requested = True
    if not _state.deferring:
        raise Interrupted
