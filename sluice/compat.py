"""Selects legacy Keras, and configures TensorFlow's logs.

``prepare_environment`` must run before the first TensorFlow import of a process. It
selects the same Keras as TFX's own images; otherwise the import order would decide,
because tensorflow_transform sets the variable on import and ``tf.keras`` is loaded
lazily.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

_QUIET = "2"


def prepare_environment() -> None:
    """Selects legacy Keras and quiet native logs for this process and its children.

    Raises:
      RuntimeError: TensorFlow has already been imported with another Keras.
    """
    if "tensorflow" in sys.modules and os.environ.get("TF_USE_LEGACY_KERAS") != "1":
        raise RuntimeError(
            "TensorFlow was imported before sluice.compat.prepare_environment(); "
            "set TF_USE_LEGACY_KERAS=1 in the environment or call it earlier"
        )
    os.environ.update(child_environment())


def child_environment() -> dict[str, str]:
    """Returns the variables that ``prepare_environment`` sets, for a child process."""
    quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL", _QUIET)
    return {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": quiet}


@contextmanager
def hidden_native_logs() -> Iterator[None]:
    """Prepares TensorFlow, and hides what native libraries print to stderr.

    What Python prints is kept.

    XLA's messages (a service is initialized, a cluster is compiled, seeds are ignored)
    do not respect TF_CPP_MIN_LOG_LEVEL (seen with TensorFlow 2.16).
    """
    prepare_environment()
    sys.stderr.flush()
    kept = os.dup(2)
    # Never closed: handlers of logs that are made meanwhile go on writing to it.
    err = os.fdopen(kept, "w", buffering=1, closefd=False)
    try:
        with open(os.devnull, "wb") as nowhere, redirect_stderr(err):
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
