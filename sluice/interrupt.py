"""Stops a running node on request, cleanly.

The scheduler sends SIGTERM to a node's process; Ctrl-C in the terminal reaches only the
scheduler. Code that can stop at a place of its own choosing runs inside
``cooperative()`` and polls ``requested()`` or calls ``check()``; any other code is left
by ``Interrupted``, raised in the main thread between two bytecodes, so native code of
some seconds delays it.

Until ``listen()`` is called (in the cloud, in a test) nothing here has any effect.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Names a directory of the node's own in this run, where it keeps what it needs to go on
# after a stop or a kill. Unset: nothing is kept.
CHECKPOINT_DIR = "SLUICE_CHECKPOINT_DIR"


class Interrupted(BaseException):
    """The node was asked to stop and has stopped.

    No ``Exception``, so that a library's ``except Exception`` lets it pass. Some catch
    everything and raise an error of their own instead, and Python drops what is raised
    in a destructor; whoever runs a node asks ``requested()`` when it has ended.
    """

    # Beam raises what a DoFn raised anew, as type(error)(error.args[0] + where).
    def __init__(self, message: str = "the node was asked to stop") -> None:
        super().__init__(message)


@dataclass
class _State:
    requested: bool = False
    cooperating: int = 0


_state = _State()


def listen() -> None:
    """Takes SIGTERM as the request to stop, and ignores SIGINT, in this process.

    A request of before, such as one inherited over a fork, is forgotten.

    Raises:
      ValueError: called in another thread than the main one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _state.requested = False
    signal.signal(signal.SIGTERM, _on_signal)


def requested() -> bool:
    """Returns whether the node was asked to stop."""
    return _state.requested


def check() -> None:
    """Raises ``Interrupted`` if the node was asked to stop."""
    if _state.requested:
        raise Interrupted


@contextlib.contextmanager
def cooperative() -> Iterator[None]:
    """Marks code of the main thread that looks after requests to stop by itself.

    Raises:
      Interrupted: a request came and the code inside has ended without an exception;
        raised when the outermost of nested blocks is left.
    """
    _state.cooperating += 1
    try:
        yield
    finally:
        _state.cooperating -= 1
    if not _state.cooperating:
        check()


def _on_signal(number: int, frame: Any) -> None:
    # Only the first one raises: a second must not disturb what the first one cleans up.
    if _state.requested:
        return
    _state.requested = True
    if not _state.cooperating:
        raise Interrupted
