"""``multiprocessing``: exceptions that cross to another process."""

from __future__ import annotations

import pickle
from multiprocessing.pool import (  # type: ignore[attr-defined]
    ExceptionWithTraceback,
    RemoteTraceback,
)
from typing import Any


def picklable(error: BaseException) -> Any:
    """Returns an exception in a form that another process can load and raise.

    Its cause there is the traceback as text, which is all that is left of an exception
    that cannot be pickled.

    Why: pickle drops the traceback and the cause of an exception.
    Upstream: undocumented classes in multiprocessing/pool.py, with which pools do this.
    Checked with: Python 3.10 and 3.12.
    Without it: the log of a failed node does not say where it has failed.
    """
    wrapped = ExceptionWithTraceback(error, error.__traceback__)
    try:
        pickle.loads(pickle.dumps(wrapped))
    except Exception:
        return RemoteTraceback(wrapped.tb)
    return wrapped
